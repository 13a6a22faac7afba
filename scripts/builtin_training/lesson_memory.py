"""The memory of a lesson: which units stand in it while each sentence is written, what is missing, what is denied."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

from builtin_training.answers import Statement
from ewe.evaluation.world.articles import ATLAS, FORUM, GAZETTE, STORIES, Source, Telling, tell
from ewe.evaluation.world.names import Split
from ewe.evaluation.world.people import SLOTS_BY_TOPIC, TOPIC_OF_SLOT, EntityPool, Fact, Person, wrong_value


@dataclass(frozen=True, slots=True)
class LessonSettings:
    """How lessons are drawn; rates are shares in [0, 1].

    min_units, max_units: bounds of the memory's capacity, which differs per lesson; max_total_units: most units in a
    lesson whose memory changes from sentence to sentence (rolling_rate). pronoun_rate: of the sentences after the
    first. missing_rate: sentences whose facts no unit was added for. no_memory_rate: lessons without any unit.
    contradicted_rate: weighted lessons in which a light unit denies a fact that a heavier one states. weighted_rate:
    lessons whose units have weights other than 1. excerpt_rate: units cut to the sentences that matter.
    kind_weights: of lives, questions, lists, comparisons.
    """

    min_units: int = 1
    max_units: int = 8
    max_total_units: int = 14
    pronoun_rate: float = 0.3
    missing_rate: float = 0.15
    no_memory_rate: float = 0.04
    contradicted_rate: float = 0.5
    weighted_rate: float = 0.3
    excerpt_rate: float = 0.3
    rolling_rate: float = 0.5
    kind_weights: tuple[float, float, float, float] = (0.6, 0.2, 0.1, 0.1)
    split: Split = "train"


@dataclass(slots=True)
class Draft:
    """A lesson in the making: its people, its units so far, and which units state which fact."""

    rng: Random
    settings: LessonSettings
    pool: EntityPool
    subjects: dict[str, Person]
    others: list[Person]
    weighted: bool
    power: int
    units: list[Telling]
    weights: list[float]

    def add(self, telling: Telling) -> int:
        """A new unit with the weight of its source; returns its index."""
        self.units.append(telling)
        self.weights.append(telling.source.veracity**self.power if self.weighted else 1.0)
        return len(self.units) - 1

    def states(self, index: int, fact: Fact) -> bool:
        """Whether a unit states the fact."""
        return fact in self.units[index].facts


def fixed_memory(draft: Draft, statements: list[Statement]) -> list[list[int]]:
    """All units stay for the whole answer, as when memory is filled once."""
    rng, settings = draft.rng, draft.settings
    capacity = _capacity(draft)
    order = list(range(len(statements)))
    rng.shuffle(order)
    for index in order:
        if rng.random() >= settings.missing_rate:
            _support(draft, statements[index], capacity - len(draft.units), list(range(len(draft.units))))
    while len(draft.units) < capacity:
        draft.add(_distractor(draft, statements))
    indices = list(range(len(draft.units)))
    rng.shuffle(indices)
    return [indices for _ in statements]


def rolling_memory(draft: Draft, statements: list[Statement]) -> list[list[int]]:
    """First in, first out: before each sentence the units that it needs come in, unless they are to be missing."""
    rng, settings = draft.rng, draft.settings
    memory: deque[int] = deque(maxlen=_capacity(draft))
    limit = min(settings.max_total_units, len(statements) + (memory.maxlen or 0))
    for _ in range(rng.randint(0, min(3, memory.maxlen or 0))):
        memory.append(draft.add(_distractor(draft, statements)))
    visible = []
    for statement in statements:
        room = min(limit - len(draft.units), memory.maxlen or 0)
        if rng.random() < settings.missing_rate:
            asked = {(fact.subject, fact.relation) for fact in statement.wording.facts}
            kept = [i for i in memory if asked.isdisjoint((f.subject, f.relation) for f in draft.units[i].facts)]
            memory = deque(kept, memory.maxlen)
        else:
            memory.extend(_support(draft, statement, room, list(memory)))
        if rng.random() < 0.3 and len(memory) < (memory.maxlen or 0) and len(draft.units) < limit:
            memory.append(draft.add(_distractor(draft, statements)))
        visible.append(rng.sample(list(memory), len(memory)))
    return visible


def _capacity(draft: Draft) -> int:
    """Units that memory holds; large memories are drawn more often, being the harder ones."""
    low, high = draft.settings.min_units, draft.settings.max_units
    return max(draft.rng.randint(low, high), draft.rng.randint(low, high))


def _support(draft: Draft, statement: Statement, room: int, memory: list[int]) -> list[int]:
    """Adds at most `room` units that state what `memory` does not yet of the sentence's facts; returns the new ones.

    In a weighted lesson one of the facts may be denied by a light unit added before the one that states it.
    """
    rng, added = draft.rng, list[int]()
    for slot, fact in zip(statement.wording.slots, statement.wording.facts, strict=True):
        if len(added) >= room or any(draft.states(index, fact) for index in (*memory, *added)):
            continue
        contradicted = draft.weighted and len(added) + 2 <= room and rng.random() < draft.settings.contradicted_rate
        source = rng.choice((ATLAS, GAZETTE)) if contradicted else _any_source(draft)
        if contradicted:
            liar = statement.person.with_value(slot, wrong_value(rng, statement.person, slot, draft.pool))
            added.append(draft.add(_tell(draft, liar, TOPIC_OF_SLOT[slot], FORUM, {liar.fact(slot)})))
        added.append(
            draft.add(_tell(draft, statement.person, TOPIC_OF_SLOT[slot], source, set(statement.wording.facts)))
        )
    return added


def _tell(draft: Draft, person: Person, topic: str, source: Source, needed: set[Fact]) -> Telling:
    """A passage on the topic, or only those of its sentences that state a needed fact."""
    story = "birth" if topic == "occupation" else topic
    telling = tell(draft.rng, person, story, source, draft.pool, draft.rng.choice(draft.others))
    if draft.rng.random() >= draft.settings.excerpt_rate:
        return telling
    kept = tuple(sentence for sentence in telling.sentences if needed.intersection(sentence.facts))
    return Telling(telling.title, telling.source, kept)


def _distractor(draft: Draft, statements: list[Statement]) -> Telling:
    """A passage about somebody else, mostly on a topic of the answer, or about a subject on any other topic."""
    rng = draft.rng
    topics = [TOPIC_OF_SLOT[slot] for statement in statements for slot in statement.wording.slots]
    strangers = [person for person in draft.others if person.name not in draft.subjects]
    if rng.random() < 0.75 and strangers:
        person = rng.choice(strangers)
        topic = rng.choice(topics) if rng.random() < 0.7 else rng.choice(STORIES)
        return _tell(draft, person, topic, _any_source(draft), {person.fact(slot) for slot in SLOTS_BY_TOPIC[topic]})
    person = rng.choice(list(draft.subjects.values()))
    topic = rng.choice([story for story in STORIES if story not in topics] or STORIES)
    return _tell(draft, person, topic, _any_source(draft), {person.fact(slot) for slot in SLOTS_BY_TOPIC[topic]})


def _any_source(draft: Draft) -> Source:
    return draft.rng.choice((ATLAS, GAZETTE, FORUM))
