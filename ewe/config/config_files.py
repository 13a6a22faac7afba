"""What settings are, and settings as text: YAML files, `group.key=value`, and what is wrong with them in words."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict

from ewe.config.addresses import without_secrets
from ewe.config.setting_names import NONE, unknown
from ewe.errors import ConfigError

SERVER_GROUP = "server"
"""The settings in a file that are the server's own."""

Name = Annotated[str | None, AfterValidator(lambda value: None if value in (None, NONE) else without_secrets(value))]
"""A name, a path or an address; "none" stands for None."""


class Settings(BaseModel):
    """A group of settings: frozen, and without unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def load_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises ConfigError if it is missing, malformed or not a mapping."""
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a mapping of settings, found {type(values).__name__}")
    return values


def load_engine_yaml(path: str | Path) -> dict[str, Any]:
    """The same without the group `server`: one file may serve `ewe serve` and every other command."""
    values = load_yaml(path)
    values.pop(SERVER_GROUP, None)
    return values


def apply_assignments(values: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """`values` with `group.key=value` assignments set; raises ConfigError for one without '=' or a malformed value."""
    result: dict[str, Any] = {key: dict(item) if isinstance(item, Mapping) else item for key, item in values.items()}
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        if not separator:
            raise ConfigError(f"{assignment!r} is not of the form group.key=value")
        *groups, key = path.strip().split(".")
        target = result
        for group in groups:
            target = target.setdefault(group, {})
            if not isinstance(target, dict):
                raise ConfigError(f"{path}: {group} is a value, not a group of settings")
        try:
            target[key] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: {text!r} is not a valid value") from error
    return result


def explain(item: Any, root: type[BaseModel]) -> str:
    """What one of pydantic's errors means, with the nearest known name for an unknown setting or value of `root`."""
    location = [str(part) for part in item["loc"]]
    name = ".".join(location) or "settings"
    if item["type"] == "literal_error":
        known_values = re.findall(r"'([^']*)'", item["ctx"]["expected"])
        return f"{name}: {unknown('value', item['input'], known_values)}"
    if item["type"] != "extra_forbidden":
        return f"{name}: {item['msg'].removeprefix('Value error, ')}"
    known: type[BaseModel] = root
    for part in location[:-1]:
        known = known.model_fields[part].annotation  # type: ignore[assignment]
    near = difflib.get_close_matches(location[-1], known.model_fields, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known.model_fields)}"
    return f"unknown setting {name}{hint}"
