"""Where the memory stands in a prompt: the mark in a text, and the two texts around it."""

from dataclasses import dataclass

from ewe.errors import InvalidRequestError

MARK, PROMPT_MARK = "{memory}", "{prompt}"


@dataclass(frozen=True, slots=True)
class PlacedPrompt:
    """A prompt with a place for the memory: `before`, the units, `after`; text: without memory."""

    text: str
    before: str
    after: str


def split_at_mark(text: str) -> PlacedPrompt | str:
    """A prompt split at its mark; the text itself without one. Raises InvalidRequestError for more than one mark."""
    before, mark, after = text.partition(MARK)
    if MARK in after:
        raise InvalidRequestError(f"the prompt holds {MARK} more than once: the memory stands in one place")
    return PlacedPrompt(before + after, before, after) if mark else text
