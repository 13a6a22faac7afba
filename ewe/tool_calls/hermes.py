"""Calls as Hermes, Qwen and many others write them: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`."""

from __future__ import annotations

from collections.abc import Mapping

from ewe.tool_calls.format import CallFormat, FunctionCall, in_lark, object_rules, read_object, skip_blanks
from ewe.tool_calls.json_reader import NeedsMoreError
from ewe.tool_calls.tools import ToolRequest

_BEGIN, _END = "<tool_call>", "</tool_call>"


class HermesFormat(CallFormat):
    """One pair of tags per call; a missing end tag is forgiven."""

    name = "hermes"
    markers = (_BEGIN,)
    opening = _BEGIN
    tokens = (_BEGIN, _END)

    def read(self, text: str, begin: int, names: frozenset[str], is_whole: bool) -> tuple[list[FunctionCall], int]:
        """One call."""
        call, end = read_object(text, begin)
        tag = skip_blanks(text, end)
        if text.startswith(_END, tag):
            end = tag + len(_END)
        elif not is_whole and _END.startswith(text[tag:]):
            raise NeedsMoreError
        return [call], end

    def grammar_rules(self, request: ToolRequest, token_ids: Mapping[str, int]) -> tuple[str, str, str]:
        """Tags on lines of their own, as the templates show them."""
        begin, end = in_lark(_BEGIN, token_ids), in_lark(_END, token_ids)
        body = f'"\\n" call "\\n" {end}'
        return body, f'"\\n" {begin} {body}', object_rules(request, self.arguments_key)
