"""What ends a text, or its prose, as it grows: stop strings, and calls of tools."""

from __future__ import annotations

from dataclasses import dataclass

from ewe.text.tool_calls.format import begun_length
from ewe.text.tool_calls.use import ToolUse


@dataclass(frozen=True, slots=True)
class StopChecker:
    """Finds stop strings and calls in a text, and what may still become one as the text goes on.

    stop: strings that end the text. tools: how calls of tools are written, if there may be any.
    """

    stop: tuple[str, ...] = ()
    tools: ToolUse | None = None

    def begin_of_stop(self, text: str, seen: int = 0) -> int | None:
        """The code point where a stop string begins that ends behind the first `seen`, the earliest; None for none."""
        begins = [text.find(stop, max(0, seen - len(stop) + 1)) for stop in self.stop]
        return min((begin for begin in begins if begin >= 0), default=None)

    def begin_of_calls(self, text: str) -> int | None:
        """The code point from which on a text seems to be calls and so is no prose; None for none."""
        return None if self.tools is None else self.tools.begin_of_calls(text)

    def has_calls(self, text: str) -> bool:
        """Whether a whole text holds a call, or one that was cut."""
        return self.tools is not None and self.tools.has_calls(text)

    def half_stop(self, text: str) -> int:
        """The length of the longest end of a text with which a longer stop string begins."""
        return begun_length(text, self.stop)

    def half_call(self, text: str) -> int:
        """How many characters at the end of a text could turn out to begin a call."""
        return 0 if self.tools is None else self.tools.held_back(text)

    def lets_pass(self, text: str) -> bool:
        """Whether no stop string and no call is in a text, and none has begun at its end."""
        has_begun = self.half_call(text) or self.half_stop(text)
        return not has_begun and self.begin_of_calls(text) is None and self.begin_of_stop(text) is None
