"""What callers of `ewe.Memory` pass, looked at before it goes anywhere: what is none raises InvalidRequestError."""

from collections.abc import Mapping

from ewe.errors import InvalidRequestError
from ewe.longterm.records import MemorySource


def check_text(name: str, text: object) -> None:
    """Refuses what is no text."""
    if not isinstance(text, str):
        raise InvalidRequestError(f"{name} must be a text, got {_kind(text)}")


def check_count(name: str, count: object, least: int = 1) -> None:
    """Refuses what is no whole number of at least `least`."""
    if not isinstance(count, int) or isinstance(count, bool):
        raise InvalidRequestError(f"{name} must be a whole number, got {count!r}")
    if count < least:
        raise InvalidRequestError(f"{name} must be at least {least}, got {count}")


def check_share(name: str, share: object) -> None:
    """Refuses what is neither None nor a number in [0, 1]."""
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if share is not None and not (is_number and 0.0 <= float(share) <= 1.0):  # type: ignore[arg-type]
        raise InvalidRequestError(f"{name} must lie in [0, 1], got {share!r}")


def check_verdict(correct: object) -> None:
    """Refuses all but true and false: "no" would count as true."""
    if not isinstance(correct, bool):
        raise InvalidRequestError(f"correct must be True or False, got {correct!r}")


def check_described(metadata: object, source: object) -> None:
    """Refuses metadata that is no mapping, and a source that is no `MemorySource`."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidRequestError(f'metadata must map names to texts, as {{"topic": "home"}}, got {_kind(metadata)}')
    if source is not None and not isinstance(source, MemorySource):
        raise InvalidRequestError(f'source must be a MemorySource, as MemorySource("user", "ann"), got {_kind(source)}')


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
