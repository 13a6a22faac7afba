"""Calls as Llama 3 writes them: an answer that is `{"name": ..., "parameters": {...}}`, several separated by `;`."""

from __future__ import annotations

from collections.abc import Mapping

from ewe.tool_calls.format import CallFormat, FunctionCall, Place, in_lark, object_rules, read_object, skip_blanks
from ewe.tool_calls.json_reader import MalformedError
from ewe.tool_calls.tools import ToolRequest

_TAG = "<|python_tag|>"


class Llama3Format(CallFormat):
    """Objects without a marker, so only where an answer begins, or after another call; the tag may stand before them.

    An object counts only if it names a tool: an answer may be JSON of its own.
    """

    name = "llama3"
    markers = (_TAG,)
    opening = ""
    tokens = (_TAG,)
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
        tag = f"{in_lark(_TAG, token_ids)}? " if _TAG in token_ids else ""
        return f"start: ANSWER | {tag}{first}\nANSWER: /[^{{\\s](.|\\n)*/\n"
