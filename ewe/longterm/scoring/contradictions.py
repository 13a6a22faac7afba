"""What a new memory says of those that are there: whether it agrees with them or contradicts them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory
from ewe.longterm.scoring.attributes import can_both_hold, same_attribute
from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge, checked

MOST_NEIGHBOURS = 16
"""At most so many memories are compared with a new one; the closest."""
LEAST_STRENGTH = 0.6
"""The judge's probability from which on a contradiction counts: it marks both sides, and moves neither."""
LEAST_AGREEMENT = 0.8
"""The one from which on two memories say the same: this moves a veracity."""


@dataclass(frozen=True, slots=True)
class Relation:
    """How a memory that is there stands to a new text; all in [0, 1], probabilities of the judge.

    supports: that the memory entails the text; supported: that the text entails the memory; contradiction: that either
    rules out the other one (the greater of both directions; 0 where the words say that both can hold). Two values of
    one attribute never support each other, whatever a judge says.
    """

    memory: Memory
    supports: float
    supported: float
    contradiction: float

    @property
    def judgement(self) -> tuple[float, float, float]:
        """(entailment, contradiction, neutral) of the text by the memory, which sum to 1."""
        supports = min(self.supports, 1.0 - self.contradiction)
        # The sum of two floats can be above 1 by a rounding error.
        return supports, self.contradiction, max(0.0, 1.0 - supports - self.contradiction)


def relations(text: str, neighbours: Sequence[Memory], judge: Judge) -> list[Relation]:
    """One relation per neighbour, in their order: the judge is asked once, for both directions of every pair.

    neighbours: the closest first, at most `MOST_NEIGHBOURS`. Raises JudgeError as the judge does.
    """
    if len(neighbours) > MOST_NEIGHBOURS:
        raise InvalidRequestError(f"at most {MOST_NEIGHBOURS} neighbours are compared, got {len(neighbours)}")
    pairs = [(memory.content, text) for memory in neighbours] + [(text, memory.content) for memory in neighbours]
    rows = checked(judge.judge(pairs) if pairs else [], len(pairs), type(judge).__name__)
    there, back = rows[: len(neighbours)], rows[len(neighbours) :]
    against = [
        0.0 if can_both_hold(memory.content, text) else float(max(one[REFUTED], other[REFUTED]))
        for memory, one, other in zip(neighbours, there, back, strict=True)
    ]
    alike = [not same_attribute(memory.content, text) for memory in neighbours]
    return [
        Relation(memory, float(one[SUPPORTED]) * may, float(other[SUPPORTED]) * may, contradiction)
        for memory, one, other, contradiction, may in zip(neighbours, there, back, against, alike, strict=True)
    ]


def contradicted(found: Sequence[Relation]) -> list[Memory]:
    """The memories that the text surely contradicts, the surest first."""
    strong = [relation for relation in found if relation.contradiction >= LEAST_STRENGTH]
    return [relation.memory for relation in sorted(strong, key=lambda relation: -relation.contradiction)]


def agreeing(found: Sequence[Relation]) -> list[Memory]:
    """The memories that say what the text says: each surely entails the other."""
    return [one.memory for one in found if min(one.supports, one.supported) >= LEAST_AGREEMENT > one.contradiction]
