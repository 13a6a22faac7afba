"""What the checks of a finished answer teach: memories behind it are moved, what was supported may become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ewe.errors import InvalidRequestError
from ewe.longterm.evidence import is_memory
from ewe.longterm.records import Scope
from ewe.longterm.search import scope_and_id
from ewe.longterm.service import MemoryService
from ewe.types import Evidence, Generation, Verdict

Count = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Lesson:
    """An answer with the evidence of its checks; scope: where new memories go; seen: the scopes that it could read.

    told: what the user said, if facts are to be taken from it.
    """

    generation: Generation
    evidence: tuple[Evidence, ...]
    scope: Scope
    seen: tuple[Scope, ...]
    told: str = ""


def learn(service: MemoryService, lesson: Lesson, promote: bool, count: Count) -> None:
    """Moves the memories that the answer was given by its evidence; with `promote`, what was supported is remembered.

    An answer counts as one recall of each, however often it looked; without a judge nothing is moved. count: hears
    ("verified", revisions) and ("promoted", memories). Raises what the service raises.
    """
    used = given(lesson)
    service.count_recalls(map(scope_and_id, used))
    if lesson.evidence and service.can_weigh:
        count("verified", len(service.apply_verdicts(used, lesson.evidence)))
    if not promote:
        return
    supporting = (piece.passage for piece in lesson.evidence if piece.stance is Verdict.SUPPORTED)
    proofs = {passage.id: passage for passage in supporting}
    for sentence in lesson.generation.sentences:
        count("promoted", len(service.promote(sentence, proofs, lesson.scope)))


def given(lesson: Lesson) -> list[str]:
    """The memories that retrieval brought to the answer, as ids of passages; those alone that it was allowed to see.

    A request's own documents may have any id, so they do not count.
    """
    retrievals = (event.data["passages"] for event in lesson.generation.trace if event.kind == "retrieval")
    found = (hit["id"] for passages in retrievals for hit in passages)
    return [name for name in dict.fromkeys(found) if _is_seen(name, lesson.seen)]


def _is_seen(passage_id: str, scopes: tuple[Scope, ...]) -> bool:
    if not is_memory(passage_id):
        return False
    try:
        return scope_and_id(passage_id)[0] in scopes
    except InvalidRequestError:  # a datastore's passage with a name like a memory's
        return False
