"""The tools that a request offers, and which of them must be called."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from ewe.errors import InvalidRequestError
from ewe.text.json_schema import check_depth, check_schema

ToolChoice = Literal["none", "auto", "required"] | Mapping[str, Any]

_PLAIN = {"type", "title", "description", "properties", "required", "additionalProperties", "$defs", "$schema"}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that may be called; parameters: the JSON schema of its arguments, an object.

    strict: whether calls of it must satisfy the schema even where no call is demanded.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False

    @classmethod
    def from_openai(cls, value: Any, where: str = "tools") -> Self:
        """Reads `{"type": "function", "function": {...}}`; raises InvalidRequestError that begins with `where`."""
        if not isinstance(value, Mapping) or value.get("type") != "function":
            raise InvalidRequestError(f"{where}: only tools of the type 'function' are supported")
        function = value.get("function")
        if not isinstance(function, Mapping):
            raise InvalidRequestError(f"{where}.function: this must be an object with a name")
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidRequestError(
                f"{where}.function.name: up to 64 letters, digits, '_', '.' and '-', got {name!r}"
            )
        parameters = function.get("parameters") or {}
        if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
            raise InvalidRequestError(f"{where}.function.parameters: this must be a JSON schema of the type 'object'")
        check_depth(parameters, f"{where}.function.parameters: ")
        description = str(function.get("description") or "")
        return cls(name, description, dict(parameters), bool(function.get("strict")))

    def to_openai(self) -> dict[str, Any]:
        """The form in which chat templates read it."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.schema},
        }

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the arguments, which says that they are an object."""
        return {"type": "object", "properties": {}, **self.parameters}


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """Tools that may be called now.

    must_call: whether the answer has to be a call; of `only`, if a function is named. parallel: whether it may be more
    than one.
    """

    tools: tuple[Tool, ...]
    must_call: bool = False
    only: str | None = None
    parallel: bool = True

    @classmethod
    def from_openai(
        cls, tools: Sequence[Any] | None, choice: ToolChoice | None = None, parallel: bool | None = None
    ) -> Self | None:
        """Reads `tools`, `tool_choice` and `parallel_tool_calls`; None where no tool may be called.

        Raises InvalidRequestError, and SchemaError for a schema that calls must satisfy and cannot.
        """
        read = tuple(Tool.from_openai(tool, f"tools.{place}") for place, tool in enumerate(tools or ()))
        names = [tool.name for tool in read]
        if len(set(names)) < len(names):
            raise InvalidRequestError("tools: two of them have the same name")
        only = _name_of(choice) if isinstance(choice, Mapping) else None
        if only is not None and only not in names:
            raise InvalidRequestError(f"tool_choice: there is no tool {only!r} in tools")
        if not isinstance(choice, Mapping) and choice not in (None, "none", "auto", "required"):
            raise InvalidRequestError(f"tool_choice: this must be none, auto, required or a function, got {choice!r}")
        if choice == "required" and not read:
            raise InvalidRequestError("tool_choice: 'required' needs tools")
        if choice == "none" or not read:
            return None
        request = cls(read, only is not None or choice == "required", only, parallel is not False)
        for place, tool in enumerate(read):
            if tool in request.callable:
                check_schema(request.schema_of(tool), f"tools.{place}.function.parameters: ")
        return request

    @property
    def callable(self) -> tuple[Tool, ...]:
        """The tools that may be called: all, or the one that is named."""
        return tuple(tool for tool in self.tools if self.only in (None, tool.name))

    @property
    def may_repeat(self) -> bool:
        """Whether a grammar lets more calls follow the first: small models that are made to call would never stop."""
        return self.parallel and not self.must_call

    @property
    def is_constrained(self) -> bool:
        """Whether a grammar has to hold the model to the schemas."""
        return self.must_call or any(tool.strict for tool in self.tools)

    def schema_of(self, tool: Tool) -> dict[str, Any]:
        """What the arguments must satisfy; any object where neither the choice nor the tool is strict.

        A plain list of properties is taken for all that there are: models that have nothing to say would invent more.
        """
        if not self.must_call and not tool.strict:
            return {"type": "object"}
        is_plain = tool.parameters.keys() <= _PLAIN
        return {"additionalProperties": False, **tool.schema} if is_plain else tool.schema


def _name_of(choice: Mapping[str, Any]) -> str:
    function = choice.get("function")
    if choice.get("type") != "function" or not isinstance(function, Mapping):
        raise InvalidRequestError('tool_choice: an object must be {"type": "function", "function": {"name": ...}}')
    return str(function.get("name"))
