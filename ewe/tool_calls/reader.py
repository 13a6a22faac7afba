"""Reads calls out of a text as it comes: content first, then calls, and never a half marker as content."""

from __future__ import annotations

from ewe.tool_calls.format import CallFormat, FunctionCall, Place
from ewe.tool_calls.json_reader import MalformedError, NeedsMoreError

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
            found = self._form.find(self._rest, self._place)
            if found is None:
                held = 0 if is_whole else self._form.held_back(self._rest, self._place)
                self._take_content(pieces, len(self._rest) - held)
                break
            self._read(pieces, *found, is_whole)
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
