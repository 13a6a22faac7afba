"""The tools of one request with one model: what the engine and the readers of its text have to know."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ewe.tool_calls.format import CallFormat, FunctionCall, Place
from ewe.tool_calls.reader import CallReader
from ewe.tool_calls.tools import ToolRequest
from ewe.types import Generation, ToolCall

_ID_CHARACTERS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class ToolUse:
    """Tools that may be called, and how the model writes calls.

    in_template: whether the model's chat template tells it of the tools. token_ids: of the format's texts, those that
    are single tokens of the model. answer_schema: what the answer must satisfy where it is no call.
    """

    request: ToolRequest
    form: CallFormat
    in_template: bool = True
    token_ids: Mapping[str, int] = field(default_factory=dict)
    answer_schema: Mapping[str, Any] | None = None

    @property
    def grammar(self) -> str | None:
        """What the text must be, in Lark; None for free text."""
        if self.request.is_constrained or self.answer_schema is not None:
            return self.form.grammar(self.request, self.token_ids, self.answer_schema)
        return None

    def reader(self) -> CallReader:
        """A reader for one answer."""
        return CallReader(self.form, frozenset(tool.name for tool in self.request.tools), self.request.parallel)

    def begin_of_calls(self, text: str) -> int | None:
        """The code point from which on a text seems to be calls and so is no prose; None for none."""
        found = self.form.find(text, Place.START)
        return None if found is None else found[0]

    def held_back(self, text: str) -> int:
        """How many characters at the end of a text could turn out to begin calls."""
        return self.form.held_back(text, Place.CONTENT)

    def has_calls(self, text: str) -> bool:
        """Whether a whole text holds a call, or one that was cut."""
        reader = self.reader()
        reader.feed(text)
        is_cut = reader.is_in_call
        reader.finish()
        return is_cut or reader.num_calls > 0

    def read(self, generation: Generation) -> Generation:
        """The answer with its calls taken out of its text."""
        reader = self.reader()
        pieces = [*reader.feed(generation.text), *reader.finish()]
        content = "".join(piece for piece in pieces if isinstance(piece, str))
        calls = tuple(with_id(piece) for piece in pieces if isinstance(piece, FunctionCall))
        return replace(generation, text=content, tool_calls=calls)


def with_id(call: FunctionCall) -> ToolCall:
    """The call under a new id: nine letters and digits, since Mistral's chat templates take no other."""
    random = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(5))
    return ToolCall(f"call{random}", call.name, call.arguments)
