"""How models of one kind write tool calls: Hermes, Llama 3, Mistral."""

import re
from collections.abc import Mapping

from ewe.text.tool_calls.format import (
    CallFormat,
    FunctionCall,
    Place,
    arguments_rules,
    call_of,
    in_lark,
    object_rules,
    read_object,
    skip_blanks,
)
from ewe.text.tool_calls.json_reader import MalformedError, NeedsMoreError, read_json, write_json
from ewe.text.tool_calls.tools import ToolRequest

_TOOL_CALL, _END_TOOL_CALL = "<tool_call>", "</tool_call>"
_PYTHON_TAG = "<|python_tag|>"
_TOOL_CALLS, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BETWEEN = re.compile(r"\s*(?:\[CALL_ID\]\s*[A-Za-z0-9_.-]+\s*)?(?:\[ARGS\]\s*)?")


class HermesFormat(CallFormat):
    """`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as Hermes, Qwen and many others write calls.

    One pair of tags per call; an end tag that is missing or cut is forgiven.
    """

    name = "hermes"
    markers = (_TOOL_CALL,)
    opening = _TOOL_CALL
    tokens = (_TOOL_CALL, _END_TOOL_CALL)

    def read(self, text: str, begin: int, names: frozenset[str], is_whole: bool) -> tuple[list[FunctionCall], int]:
        """One call."""
        call, end = read_object(text, begin)
        tag = skip_blanks(text, end)
        if text.startswith(_END_TOOL_CALL, tag):
            end = tag + len(_END_TOOL_CALL)
        elif _END_TOOL_CALL.startswith(text[tag:]):
            if not is_whole:
                raise NeedsMoreError
            end = len(text)
        return [call], end

    def grammar_rules(self, request: ToolRequest, token_ids: Mapping[str, int]) -> tuple[str, str, str]:
        """Tags on lines of their own, as the templates show them."""
        begin, end = in_lark(_TOOL_CALL, token_ids), in_lark(_END_TOOL_CALL, token_ids)
        body = f'"\\n" call "\\n" {end}'
        return body, f'"\\n" {begin} {body}', object_rules(request, self.arguments_key)


class Llama3Format(CallFormat):
    """An answer that is `{"name": ..., "parameters": {...}}`, several separated by `;`, as Llama 3 writes calls.

    Objects without a marker, so only where an answer begins, or after another call; the tag may stand before them. An
    object counts only if it names a tool: an answer may be JSON of its own.
    """

    name = "llama3"
    markers = (_PYTHON_TAG,)
    opening = ""
    tokens = (_PYTHON_TAG,)
    arguments_key = "parameters"

    def find(self, text: str, place: Place) -> tuple[int, int] | None:
        """An object at the start or after a call, or the tag."""
        begin = body = skip_blanks(text, 0)
        if place is Place.CALL and text.startswith(";", begin):
            body = skip_blanks(text, begin + 1)
        if place is not Place.CONTENT and text.startswith("{", body):
            return begin, body
        return super().find(text, place)

    def held_back(self, text: str, place: Place) -> int:
        """Half a tag; after a call also what may separate it from the next."""
        if place is Place.CALL and not text.strip().removeprefix(";"):
            return len(text)
        return super().held_back(text, place)

    def read(self, text: str, begin: int, names: frozenset[str], is_whole: bool) -> tuple[list[FunctionCall], int]:
        """One call."""
        call, end = read_object(text, begin)
        if call.name not in names:
            raise MalformedError
        return [call], end

    def grammar_rules(self, request: ToolRequest, token_ids: Mapping[str, int]) -> tuple[str, str, str]:
        """Bare objects."""
        return "call", '"; " call', object_rules(request, self.arguments_key)

    def free_start(self, first: str, token_ids: Mapping[str, int]) -> str:
        """An answer that is no call does not begin as one."""
        tag = f"{in_lark(_PYTHON_TAG, token_ids)}? " if _PYTHON_TAG in token_ids else ""
        return f"start: ANSWER | {tag}{first}\nANSWER: /[^{{\\s](.|\\n)*/\n"


class MistralFormat(CallFormat):
    """`[TOOL_CALLS] [{"name": ..., "arguments": {...}}]`, or `[TOOL_CALLS]name[ARGS]{...}` for every call.

    The first is the older form of Mistral's models; an id that the model chose is left out.
    """

    name = "mistral"
    markers = (_TOOL_CALLS,)
    opening = _TOOL_CALLS
    tokens = (_TOOL_CALLS, _ID, _ARGUMENTS)

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
        begin, separator = in_lark(_TOOL_CALLS, token_ids), in_lark(_ARGUMENTS, token_ids)
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


FORMATS: dict[str, CallFormat] = {form.name: form for form in (HermesFormat(), Llama3Format(), MistralFormat())}
