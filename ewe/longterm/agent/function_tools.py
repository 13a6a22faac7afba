"""Python functions as tools of an agent."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, Self, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

from ewe.errors import ConfigError, EWEError
from ewe.text.jsonable import jsonable

_PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_MOST_SAID = 500


class ToolError(EWEError):
    """A tool was called with the wrong arguments, or failed; the message is what the model is told."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call by its name; parameters: JSON schema of an object with its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    _checker: TypeAdapter[Any]
    _function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Self:
        """The tool of a plain function: every parameter has a type, and the docstring says what it does.

        Arguments are taken strictly ("3" is no integer). Raises ConfigError naming what is missing.
        """
        name = getattr(function, "__name__", "")
        about = inspect.cleandoc(inspect.getdoc(function) or "")
        if not name.isidentifier():
            raise ConfigError(f"a tool must be a function with a name, got {function!r}")
        if inspect.iscoroutinefunction(function):
            raise ConfigError(f"tool {name}: it must be a plain function, not a coroutine")
        if not about:
            raise ConfigError(f"tool {name}: say in its docstring what it does; the model knows it by nothing else")
        return cls(name, about, *_checked(name, function))

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """What the function returns, as JSON can hold it. Raises ToolError for arguments it does not take, and for
        whatever the function raises.
        """
        try:
            checked = self._checker.validate_json(json.dumps(arguments))
        except ValidationError as error:
            raise ToolError(f"{self.name} does not take these arguments: {_problems(error)}") from error
        try:
            return jsonable(self._function(**checked))
        except EWEError as error:
            raise ToolError(f"{self.name} failed: {str(error)[:_MOST_SAID]}") from error
        except Exception as error:  # whatever the tool raises
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {str(error)[:_MOST_SAID]}") from error


def _checked(name: str, function: Callable[..., Any]) -> tuple[dict[str, Any], TypeAdapter[Any], Callable[..., Any]]:
    """The schema of a function's arguments, what checks them, and the function."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"tool {name}: its types cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _PLAIN or parameter.name not in hints:
            raise ConfigError(f"tool {name}: parameter {parameter} needs a name of its own and a type")
        fields[parameter.name] = hints[parameter.name]
        if parameter.default is not inspect.Parameter.empty:
            fields[parameter.name] = NotRequired[hints[parameter.name]]
            defaults[parameter.name] = jsonable(parameter.default)
    make_type: Any = TypedDict  # a type that is made here and now
    arguments = make_type(name, fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    try:
        checker = TypeAdapter(arguments)
        schema = checker.json_schema()
    except PydanticUserError as error:
        raise ConfigError(
            f"tool {name}: JSON has nothing for one of its types: {str(error).splitlines()[0]}"
        ) from error
    for parameter_name, parameter_schema in schema.get("properties", {}).items():
        parameter_schema.pop("title", None)  # the name once more
        if parameter_name in defaults:
            parameter_schema["default"] = defaults[parameter_name]
    return schema, checker, function


def _problems(error: ValidationError) -> str:
    """What is wrong with which argument, without the arguments' own words."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in errors)[:_MOST_SAID]
