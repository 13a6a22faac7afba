"""What memories were before: read from their histories."""

from collections.abc import Sequence
from dataclasses import replace

from ewe.longterm.records import Memory, Revision


def as_it_was(memory: Memory, history: Sequence[Revision], at: float) -> Memory | None:
    """A memory with the content and veracity that it had at a time (seconds since 1970); None if it did not hold then.

    Before it was written down it is as it was at first.
    """
    if not memory.holds_at(at):
        return None
    later = [revision for revision in history if revision.at > at]
    content = next((revision.content_before for revision in later if revision.content_before), memory.content)
    return replace(memory, content=content, veracity=later[0].veracity_before if later else memory.veracity)
