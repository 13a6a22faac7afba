"""Calls as Mistral's models write them: `[TOOL_CALLS] [{"name": ..., "arguments": {...}}]`, and newer ones
`[TOOL_CALLS]name[ARGS]{...}` for every call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ewe.tool_calls.format import (
    CallFormat,
    FunctionCall,
    arguments_rules,
    call_of,
    in_lark,
    object_rules,
    skip_blanks,
)
from ewe.tool_calls.json_reader import MalformedError, NeedsMoreError, read_json, write_json
from ewe.tool_calls.tools import ToolRequest

_BEGIN, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BETWEEN = re.compile(r"\s*(?:\[CALL_ID\]\s*[A-Za-z0-9_.-]+\s*)?(?:\[ARGS\]\s*)?")


class MistralFormat(CallFormat):
    """A list of objects, or names with their arguments; an id that the model chose is left out."""

    name = "mistral"
    markers = (_BEGIN,)
    opening = _BEGIN
    tokens = (_BEGIN, _ID, _ARGUMENTS)

    def read(self, text: str, begin: int, names: frozenset[str], is_whole: bool) -> tuple[list[FunctionCall], int]:
        """A list of calls, a single object, or one call of the newer form."""
        begin = skip_blanks(text, begin)
        if begin >= len(text):
            raise NeedsMoreError
        if text[begin] not in "[{":
            return _read_named(text, begin)
        value, end = read_json(text, begin)
        calls = [call_of(item) for item in (value if isinstance(value, list) else [value])]
        if not calls:
            raise MalformedError
        return calls, end

    def grammar_rules(self, request: ToolRequest, token_ids: Mapping[str, int]) -> tuple[str, str, str]:
        """The newer form where the tokenizer has its separator."""
        if _ARGUMENTS not in token_ids:
            more = '(", " call)*' if request.may_repeat else ""
            return f'" [" call {more} "]"', "", object_rules(request, self.arguments_key)
        begin, separator = in_lark(_BEGIN, token_ids), in_lark(_ARGUMENTS, token_ids)
        parts = arguments_rules(request)
        options = " | ".join(f'"{tool.name}" {separator} {name}' for tool, name, _ in parts)
        return "call", f"{begin} call", f"call: {options}\n{''.join(rule for _, _, rule in parts)}"


def _read_named(text: str, begin: int) -> tuple[list[FunctionCall], int]:
    name = _NAME.match(text, begin)
    if name is None:
        raise MalformedError
    between = _BETWEEN.match(text, name.end())
    position = between.end() if between else name.end()
    if not text.startswith("{", position):
        raise NeedsMoreError if _may_go_on(text[name.end() :]) else MalformedError
    arguments, end = read_json(text, position)
    return [FunctionCall(name.group(), write_json(arguments))], end


def _may_go_on(rest: str) -> bool:
    """Whether a text after a name is the beginning of what may stand there."""
    rest = rest.strip()
    if rest.startswith(_ID):
        rest = _NAME.sub("", rest.removeprefix(_ID).lstrip(), count=1).lstrip()
    return _ARGUMENTS.startswith(rest) or _ID.startswith(rest)
