"""What moves the veracity of a memory that is there: feedback, passages, verdicts."""

from collections.abc import Callable, Sequence
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ewe.errors import ConfigError
from ewe.longterm.memory_search import scope_and_id
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.scoring.contradictions import LEAST_STRENGTH
from ewe.longterm.scoring.forms import VeracityUpdate
from ewe.longterm.scoring.verimem import JUDGE_RELIABILITY, evidence_conflict, recall_uncertainty
from ewe.longterm.store import Change, MemoryStore
from ewe.text.prompt_injection import addresses_the_reader
from ewe.types import Evidence, Passage
from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge, checked

Clock = Callable[[], float]  # the time in seconds since 1970
MOST_TRUSTED = 0.95
"""Nobody's word counts as right more often than this."""
_MOVED = 1e-3  # a change of veracity below this is none


class EvidenceBook:
    """Changes memories by evidence, each piece once: what was counted stands in the memory's history.

    A person's feedback counts once until they change their mind, a passage once whatever sentence brought it up, so
    that neither asking again nor saying again moves anything. Memories are no evidence for memories.
    """

    def __init__(self, store: MemoryStore, judge: Judge | None, clock: Clock, update: VeracityUpdate) -> None:
        self._store, self._judge, self._clock, self._update = store, judge, clock, update

    @property
    def can_weigh(self) -> bool:
        """Whether there is a judge to read passages."""
        return self._judge is not None

    def feedback(self, scope: Scope, memory_id: str, correct: bool, by: MemorySource) -> Revision | None:
        """Somebody says that a memory is right or wrong; None if they said so already. Raises InvalidRequestError."""
        voice = f"feedback:{quote(by.kind, safe='')}:{quote(by.id, safe='')}:"
        mark = voice + ("correct" if correct else "incorrect")
        with self._store.transaction():
            memory = self._store.get(scope, memory_id)
            earlier = [piece for piece in self._pieces(memory) if piece.startswith(voice)]
            if earlier and earlier[-1] == mark:
                return None
            row = np.array([[1.0, 0.0, 0.0] if correct else [0.0, 1.0, 0.0]])
            veracity = self._update(memory, row, [_reliability(by.reliability, MOST_TRUSTED)], self._clock())
            change = Change(veracity, recall_uncertainty(veracity), correct=int(correct), incorrect=int(not correct))
            return self._store.revise(scope, memory_id, change, at=self._clock(), reason="feedback", evidence=[mark])

    def weigh(
        self, memory: Memory, passages: Sequence[Passage], reason: str, *, always: bool = False
    ) -> Revision | None:
        """Moves a memory by what passages say of it; None if none of them is new or says anything.

        Memories, what is believed 1/2 or less, and texts that address their reader do not count. always: write a
        revision even if nothing moved. Raises ConfigError without a judge, JudgeError as it does.
        """
        if self._judge is None:
            raise ConfigError("weighing passages needs a judge: give the memory service one")
        seen = set(self._pieces(memory))
        new = {
            piece: passage
            for passage in passages
            if _counts(passage) and (piece := f"passage:{passage.id}") not in seen
        }
        rows = _judged(self._judge, list(new.values()), memory)
        trust = [_reliability(passage.veracity, JUDGE_RELIABILITY) for passage in new.values()]
        with self._store.transaction():
            current = self._store.find(memory.scope, memory.id)
            if current is None or current.content != memory.content:
                return None  # deleted or rewritten while the judge read
            veracity = self._update(current, rows, trust, self._clock()) if new else current.veracity
            moved = abs(veracity - current.veracity) >= _MOVED
            if not moved and not always:
                return None
            change = (
                Change(veracity, recall_uncertainty(veracity, conflict=evidence_conflict(rows))) if moved else Change()
            )
            return self._store.revise(
                memory.scope, memory.id, change, at=self._clock(), reason=reason, evidence=list(new) if moved else []
            )

    def settling(self, memory: Memory, passages: Sequence[Passage]) -> Passage | None:
        """The first passage that surely supports or refutes a memory; None without one. Raises JudgeError."""
        counting = [passage for passage in passages if _counts(passage)]
        if self._judge is None:
            return None
        rows = _judged(self._judge, counting, memory)
        decided = (place for place, row in enumerate(rows) if max(row[SUPPORTED], row[REFUTED]) >= LEAST_STRENGTH)
        return next((counting[place] for place in decided), None)

    def verdicts(self, used: Sequence[str], evidence: Sequence[Evidence]) -> list[Revision]:
        """Moves the memories among the passages `used` (ids) by the evidence that decided a text's verdicts."""
        passages = list({piece.passage.id: piece.passage for piece in evidence}.values())
        revisions = []
        for passage_id in dict.fromkeys(used):
            if not is_memory(passage_id):
                continue
            memory = self._store.find(*scope_and_id(passage_id))
            revision = self.weigh(memory, passages, "verified") if memory is not None else None
            if revision is not None:
                revisions.append(revision)
        return revisions

    def _pieces(self, memory: Memory) -> list[str]:
        """The evidence that was counted for a memory, in order."""
        return [piece for revision in self._store.history(memory.scope, memory.id) for piece in revision.evidence]


def _judged(judge: Judge, passages: Sequence[Passage], memory: Memory) -> NDArray[np.float32]:
    """What passages say of a memory, float32 [passages, 3]."""
    pairs = [(passage.text, memory.content) for passage in passages]
    return checked(judge.judge(pairs) if pairs else [], len(pairs), type(judge).__name__)


def is_memory(passage_id: str) -> bool:
    """Whether the id of a passage is the address of a memory."""
    return passage_id.startswith("memory:")


def _counts(passage: Passage) -> bool:
    return passage.veracity > 0.5 and not is_memory(passage.id) and not addresses_the_reader(passage.text)


def _reliability(believed: float, most: float) -> float:
    return min(max(believed, 0.5), most)
