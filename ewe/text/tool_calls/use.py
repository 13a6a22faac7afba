"""The tools of one request with one model, and calls read out of its text as it comes."""

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ewe.text.tool_calls.format import CallFormat, FunctionCall, Place
from ewe.text.tool_calls.json_reader import MalformedError, NeedsMoreError
from ewe.text.tool_calls.tools import ToolRequest
from ewe.types import Generation, ToolCall

_ID_CHARACTERS = string.ascii_letters + string.digits


Piece = str | FunctionCall
"""A piece of content, or a whole call."""

_SHORT = 256


class CallReader:
    """Reads one answer; the pieces add up to the same however its text is cut.

    names: of the tools. parallel: whether calls after the first are kept. A call is given when it is complete, so its
    arguments are always a JSON object. What begins like a call and is none is content, as it stands; white space before
    a call and at the end of an answer with calls is left out.
    """

    def __init__(self, form: CallFormat, names: frozenset[str], parallel: bool = True) -> None:
        self.num_calls = 0
        self._form = form
        self._names = names
        self._parallel = parallel
        self._place = Place.START
        self._blanks = ""  # white space that is content if more content follows
        self._rest = ""
        self._waits = False

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are certain after some more text."""
        self._rest += text
        # A long call is not read again and again: only these can end it.
        if self._waits and len(self._rest) > _SHORT and not any(mark in text for mark in "}]>"):
            return []
        return self._drain(is_whole=False)

    @property
    def is_in_call(self) -> bool:
        """Whether the text so far ends in the middle of a call."""
        return self._waits

    def finish(self) -> list[Piece]:
        """The last pieces."""
        pieces = self._drain(is_whole=True)
        if self._blanks and not self.num_calls:
            pieces.append(self._blanks)
        return pieces

    def _drain(self, is_whole: bool) -> list[Piece]:
        pieces: list[Piece] = []
        self._waits = False
        while self._rest and not self._waits:
            call = self._form.find(self._rest, self._place)
            if call is None:
                held = 0 if is_whole else self._form.held_back(self._rest, self._place)
                self._take_content(pieces, len(self._rest) - held)
                break
            self._read(pieces, *call, is_whole)
        return pieces

    def _read(self, pieces: list[Piece], begin: int, body: int, is_whole: bool) -> None:
        """Reads the call between whose marker's ends these are, or finds that it is none."""
        try:
            calls, end = self._form.read(self._rest, body, self._names, is_whole)
        except (MalformedError, NeedsMoreError) as problem:
            self._waits = isinstance(problem, NeedsMoreError) and not is_whole
            self._take_content(pieces, begin if self._waits else max(body, begin + 1))
            return
        self._take_content(pieces, begin)
        self._rest = self._rest[end - begin :]
        self._place, self._blanks = Place.CALL, ""
        for call in calls:
            if self._parallel or not self.num_calls:
                pieces.append(call)
                self.num_calls += 1

    def _take_content(self, pieces: list[Piece], count: int) -> None:
        """Takes characters as content; white space at their end waits for what follows it."""
        content, self._rest = self._rest[:count], self._rest[count:]
        if content.strip():
            self._place = Place.CONTENT
        known = (self._blanks + content).rstrip()
        self._blanks = (self._blanks + content)[len(known) :]
        if known:
            pieces.append(known)


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
        begin = self.form.find(text, Place.START)
        return None if begin is None else begin[0]

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
