"""The server's settings, and where settings come from: command line, environment, file, default, in this order."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

import yaml
from pydantic import Field, SecretStr, ValidationError, field_validator

from ewe.config import Config, resolve_config
from ewe.config.config_files import SERVER_GROUP, Settings, apply_assignments, explain, load_yaml
from ewe.errors import ConfigError

PREFIX = "EWE_ENGINE_"


class ServerSettings(Settings):
    """Where the server listens, who may ask, and how much.

    served_model_name: what clients call the model, one name or several (none: the name in `model.name` and its last
    part). api_key_file: one key a line.
    users_per_key: whether each of several keys has memories of its own, whatever its users are called. cors_origins:
    web sites whose pages may ask. trusted_proxies: addresses and networks whose X-Forwarded-For tells who asks.
    max_waiting: answers that may wait for a place among those that are written;
    max_per_key: answers under way that one key may have; max_queued_per_key: requests of one key that may wait for one
    kind of other work, such as verification. max_prompt_bytes: of the text of all prompts of a
    request (None: 16 per token of the model's length, at least 64 KiB). max_connections: open at once (None: half
    of the files that the process may open); header_timeout: seconds for the head of a request; body_timeout: seconds in
    which some of a body must come, and all of it beside the time for its length, or some of an answer be taken;
    keep_alive: seconds from an answer to the next
    request. max_tokens, max_n: the most that a request may ask for (None:
    what the model's length leaves). strict: whether fields that this server does not know are refused, not ignored.
    deadline: seconds after which an answer ends with what it has; drain: seconds that answers have to end in when the
    server is told to stop; ping: seconds of silence in a stream before a comment; stalled_after: seconds in which the
    engine's loop must turn to count as ready, more than any pass takes: a router kills whoever stalls. tool_parser: how
    the model's tool calls are read (auto: as its chat template or its tokenizer suggests; none: requests with tools are
    refused). tracing: whether spans go to OpenTelemetry's collector, which its own variables name. batch_folder: where
    files and batches are kept (None: there are none); batch_bytes: the most that one key may keep there;
    batch_concurrency: requests of all batches under way. response_bytes: how much of finished responses is kept in
    memory for each key, so that others can follow them (0: nothing is). engine_process: whether `ewe serve` gives the
    engine a process of its own, so that HTTP takes no time from its steps (None: on a GPU, unless something stands
    against it).
    """

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    served_model_name: tuple[str, ...] = ()
    api_key: SecretStr | None = None
    api_key_file: Path | None = None
    users_per_key: bool = True
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_waiting: int = Field(256, ge=0)
    max_per_key: int | None = Field(None, gt=0)
    max_queued_per_key: int = Field(32, gt=0)
    max_body_bytes: int = Field(4 << 20, gt=0)
    max_prompt_bytes: int | None = Field(None, gt=0)
    max_prompt_tokens: int | None = Field(None, gt=0)
    max_connections: int | None = Field(None, gt=0)
    header_timeout: float = Field(20.0, gt=0)
    body_timeout: float = Field(30.0, gt=0)
    keep_alive: int = Field(60, gt=0)
    max_tokens: int | None = Field(None, gt=0)
    max_n: int = Field(16, gt=0)
    strict: bool = False
    deadline: float = Field(600.0, gt=0)
    drain: float = Field(30.0, ge=0)
    ping: float = Field(5.0, gt=0)
    stalled_after: float = Field(300.0, gt=0)
    tool_parser: Literal["auto", "hermes", "llama3", "mistral", "none"] = "auto"
    log_format: Literal["text", "json"] = "text"
    tracing: bool = False
    batch_folder: Path | None = None
    batch_bytes: int = Field(4 << 30, gt=0)
    batch_concurrency: int = Field(8, gt=0)
    response_bytes: int = Field(64 << 20, ge=0)
    engine_process: bool | None = None

    @field_validator("served_model_name", mode="before")
    @classmethod
    def _one_name(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            ip_network(item)  # raises ValueError for what is none
        return value

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """The settings in the group `server` of a YAML file, which need not be there; raises ConfigError."""
        return cls.from_mapping(_group_of(load_yaml(path)))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Settings of the group `server`; raises ConfigError naming each problem."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(*(f"server: {explain(item, cls)}" for item in error.errors())) from error

    def keys(self) -> tuple[str, ...]:
        """The keys that open the server; none means that it is open. Raises ConfigError for a file without any."""
        keys = [self.api_key.get_secret_value()] if self.api_key is not None else []
        if self.api_key_file is not None:
            try:
                lines = self.api_key_file.read_text(encoding="utf-8").split("\n")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"server.api_key_file: cannot read {self.api_key_file}: {error}") from error
            stripped = [line.strip() for line in lines]
            keys += [line for line in stripped if line and not line.startswith("#")]
            if not keys:
                raise ConfigError(f"server.api_key_file: {self.api_key_file} holds no key")
        if not all(keys):
            raise ConfigError("server.api_key is empty: leave it out for a server without a key")
        return tuple(keys)


def resolve_settings(
    model: str | None, file: Path | None, environ: Mapping[str, str], assignments: Iterable[str]
) -> tuple[Config, ServerSettings, list[str]]:
    """Settings of engine and server, and the names in the environment that are none.

    assignments: `group.key=value` of the command line, as YAML. Raises ConfigError.
    """
    values = load_yaml(file) if file is not None else {}
    group = _group_of(values)
    values.pop(SERVER_GROUP, None)
    from_environment, unknown = read_environment(environ)
    named = from_environment.pop("model.name", None)
    model = model if model is not None else None if named is None else str(yaml.safe_load(named))
    given = [*(f"{key}={value}" for key, value in from_environment.items()), *assignments]
    for_server = [
        item.removeprefix(f"{SERVER_GROUP}.") for item in given if item.strip().startswith(f"{SERVER_GROUP}.")
    ]
    for_engine = [item for item in given if not item.strip().startswith(f"{SERVER_GROUP}.")]
    config = resolve_config(model, values if file is not None else None).override(for_engine)
    return config, ServerSettings.from_mapping(apply_assignments(group, for_server)), unknown


def _group_of(values: Mapping[str, Any]) -> dict[str, Any]:
    group = values.get(SERVER_GROUP) or {}
    if not isinstance(group, dict):
        raise ConfigError("server must be a group of settings")
    return group


def read_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Setting -> value as YAML, from `EWE_ENGINE_GROUP__KEY`; and the variables whose beginning is no setting.

    Those are left alone: Kubernetes sets EWE_ENGINE_PORT and others beside a service named ewe-engine.
    """
    settings: dict[str, str] = {}
    unknown: list[str] = []
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX):
            continue
        path = name.removeprefix(PREFIX).lower().split("__")
        if path[0] in Config.model_fields or (path[0] == SERVER_GROUP and len(path) > 1):
            # A text stays what it is: a key of digits, a folder called "no".
            settings[".".join(path)] = yaml.safe_dump(value) if _is_text(path) else value
        else:
            unknown.append(name)
    return settings, unknown


def _is_text(path: list[str]) -> bool:
    kind: Any = ServerSettings if path[0] == SERVER_GROUP else Config
    for part in path[1:] if path[0] == SERVER_GROUP else path:
        field = getattr(kind, "model_fields", {}).get(part)
        kind = field.annotation if field is not None else None
    return get_origin(kind) is not tuple and bool({str, SecretStr, Path} & {kind, *get_args(kind)})
