"""The errors that users of the engine can meet, each with a message that says what to do."""


class EWEError(Exception):
    """Base of every error that the engine raises on purpose."""


class ConfigError(EWEError, ValueError):
    """A setting is unknown, out of range, or contradicts another one; `problems` names each of them."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class InvalidRequestError(EWEError, ValueError):
    """A request cannot be served as it stands; the message begins "field: " where one field of it is at fault."""


class PromptTooLongError(InvalidRequestError):
    """The prompt leaves no room for an answer, in the model's length or in the KV pool."""


class SchemaError(InvalidRequestError):
    """A JSON schema that the engine cannot keep to, or not with this model or installation."""


class ModelDownloadError(EWEError):
    """A known model cannot be brought from the package index; the message says why in a line."""


class UnsupportedModelError(EWEError, ValueError):
    """The architecture's attention cannot be honoured; the message names it and the reason."""


class DatastoreError(EWEError):
    """A datastore is missing, damaged or unreadable."""


class PrecomputedError(EWEError):
    """A folder of precomputed units is missing, damaged, or made for another model or other settings."""


class JudgeError(EWEError):
    """A judge of claims cannot be loaded, or gave an answer that is none."""


class DeviceMemoryError(EWEError):
    """The model's device has too little memory; the message says what the budget was and which setting to change."""


class OutOfBlocksError(EWEError):
    """The KV pool has too few free blocks; the scheduler answers by waiting or swapping."""


class EngineDeadError(EWEError):
    """The engine loop stopped on an unexpected error; the cause is chained."""
