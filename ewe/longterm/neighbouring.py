"""Which of the memories that were found a new one is compared with, and which give way to it."""

from collections.abc import Sequence

from ewe.longterm.change.change_reading import Stance
from ewe.longterm.records import Memory, Scope
from ewe.longterm.scoring.contradictions import MOST_NEIGHBOURS, is_personal
from ewe.longterm.scoring.scorers import voice_of


def neighbours(hits: Sequence[Memory], most: int = MOST_NEIGHBOURS) -> list[Memory]:
    """At most `most` of the memories found (closest first): half the closest, half the closest of each other voice.

    Without the second half fifty copies of one source would hide what they contradict. Left places go to the closest.
    """
    chosen, rest = list(hits[: most // 2]), list(hits[most // 2 :])
    heard = {voice_of(memory) for memory in chosen}
    for memory in rest:
        if len(chosen) < most and voice_of(memory) not in heard:
            heard.add(voice_of(memory))
            chosen.append(memory)
    taken = set(map(key_of, chosen))
    left = [memory for memory in rest if key_of(memory) not in taken]
    return chosen + left[: most - len(chosen)]


def key_of(memory: Memory) -> tuple[Scope, str, str]:
    """What tells a memory, with these words, from every other one."""
    return memory.scope, memory.id, memory.content


def of_one_place(memory: Memory, older: Sequence[tuple[Memory, Stance]]) -> list[Memory]:
    """The memories of its scope of which a new one takes the place, or which take its own, if it began earlier."""
    changed = (other for other, stance in older if stance is Stance.CHANGED)
    return [other for other in changed if _may_replace(memory, other)]


def _may_replace(memory: Memory, other: Memory) -> bool:
    """Whether the voice or the trust of a new memory allows that one of the two ends."""
    if "said" in memory.metadata and memory.metadata["said"] == other.metadata.get("said"):
        return False  # facts of one message, which tells what holds together
    same = voice_of(memory) == voice_of(other)
    return same or (memory.source.reliability >= other.veracity and not is_personal(memory.content))
