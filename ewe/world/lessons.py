"""Lessons: prompts with memory units and the answers that a model should learn to write from them.

Owns: which units stand in memory while each sentence is written, what is missing, what is contradicted. Knows the
rest of the world's text modules; knows nothing of tokens or models.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

import numpy as np

from ewe.types import Passage
from ewe.world import names
from ewe.world.answers import Statement, compose_answer, retell
from ewe.world.articles import ATLAS, FORUM, GAZETTE, STORIES, Source, Telling, tell
from ewe.world.names import Split
from ewe.world.people import SLOTS_BY_TOPIC, TOPIC_OF_SLOT, EntityPool, Fact, Person, draw_person
from ewe.world.poison import wrong_value
from ewe.world.prompts import KINDS, draw_prompt
from ewe.world.wording import ValueSpan


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


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence of the answer.

    text starts with a space, so that prompt + all texts is the full text. spans: values with their places in `text`.
    visible: indices of the units in memory while it is written. known: per span, whether a visible unit states it.
    """

    text: str
    spans: tuple[ValueSpan, ...]
    visible: tuple[int, ...]
    known: tuple[bool, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts stated."""
        return tuple(span.fact for span in self.spans)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A prompt, an answer, and the units ("Title: text") with their weights in (0, 1], their passages, and the values
    that each states, with their places in the unit.
    """

    prompt: str
    answer: tuple[AnswerSentence, ...]
    units: tuple[str, ...]
    weights: tuple[float, ...]
    passages: tuple[Passage, ...]
    stated: tuple[tuple[ValueSpan, ...], ...]

    @property
    def text(self) -> str:
        """Prompt and answer."""
        return self.prompt + "".join(sentence.text for sentence in self.answer)


@dataclass(slots=True)
class _Draft:
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


def sample_lesson(rng: Random | np.random.Generator, settings: LessonSettings | None = None) -> Lesson:
    """One lesson, drawn from `rng` alone."""
    if isinstance(rng, np.random.Generator):
        rng = Random(int(rng.integers(2**63)))
    return sample_lessons(rng, settings or LessonSettings(), 1)[0]


def sample_lessons(rng: Random, settings: LessonSettings, tellings: int) -> list[Lesson]:
    """A lesson and, if it tells a life, `tellings` - 1 more that tell it in other words and another order under the
    same units.
    """
    pool = EntityPool.draw(rng, settings.split, rng.randint(4, 10))
    subject = draw_person(rng, pool)
    surname = subject.surname if rng.random() < 0.3 else None
    others = [draw_person(rng, pool, names.person_name(rng, settings.split, surname)), draw_person(rng, pool)]
    others = [other for other in others if other.name != subject.name]
    prompt = draw_prompt(rng, rng.choices(KINDS, settings.kind_weights)[0], subject, others[-1])
    subjects = {person.name: person for person in (subject, others[-1]) if person.name in prompt.subjects}
    statements = compose_answer(rng, prompt, subjects, settings.pronoun_rate)
    weighted = rng.random() < settings.weighted_rate
    draft = _Draft(rng, settings, pool, subjects, others, weighted, rng.randint(1, 2), [], [])
    if rng.random() < settings.no_memory_rate:
        visible: list[list[int]] = [[] for _ in statements]
    elif rng.random() < settings.rolling_rate:
        visible = _rolling_memory(draft, statements)
    else:
        visible = _fixed_memory(draft, statements)
    lessons = [_finish(draft, prompt.text, statements, visible)]
    for _ in range(tellings - 1 if prompt.kind == "life" else 0):
        other_prompt = draw_prompt(rng, prompt.kind, subject, others[-1])
        retold, seen = _retell(rng, statements, visible, settings.pronoun_rate)
        lessons.append(_finish(draft, other_prompt.text, retold, seen))
    return lessons


def _retell(
    rng: Random, statements: list[Statement], visible: list[list[int]], pronoun_rate: float
) -> tuple[list[Statement], list[list[int]]]:
    """The statements in other words and another order, each with the memory it had; none that tells nothing new."""
    retold: list[Statement] = []
    seen: list[list[int]] = []
    told: set[str] = set()
    for number in rng.sample(range(len(statements)), len(statements)):
        statement = retell(rng, statements[number], pronoun_rate, named=not retold)
        if not told.issuperset(statement.wording.slots):
            retold.append(statement)
            seen.append(visible[number])
            told.update(statement.wording.slots)
    return retold, seen


def _finish(draft: _Draft, prompt: str, statements: list[Statement], visible: list[list[int]]) -> Lesson:
    sentences = []
    for statement, indices in zip(statements, visible, strict=True):
        shift = 1 + len(statement.lead_in)
        spans = tuple(ValueSpan(s.start + shift, s.end + shift, s.fact) for s in statement.wording.spans)
        known = tuple(any(draft.states(index, span.fact) for index in indices) for span in spans)
        sentences.append(AnswerSentence(" " + statement.text, spans, tuple(indices), known))
    passages = tuple(unit.passage(f"lesson-{index}") for index, unit in enumerate(draft.units))
    units = tuple(f"{passage.title}: {passage.text}" for passage in passages)
    stated = tuple(_shifted(unit.spans, len(unit.title) + 2) for unit in draft.units)
    return Lesson(prompt, tuple(sentences), units, tuple(draft.weights), passages, stated)


def _shifted(spans: tuple[ValueSpan, ...], shift: int) -> tuple[ValueSpan, ...]:
    return tuple(ValueSpan(span.start + shift, span.end + shift, span.fact) for span in spans)


def _fixed_memory(draft: _Draft, statements: list[Statement]) -> list[list[int]]:
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


def _rolling_memory(draft: _Draft, statements: list[Statement]) -> list[list[int]]:
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


def _capacity(draft: _Draft) -> int:
    """Units that memory holds; large memories are drawn more often, being the harder ones."""
    low, high = draft.settings.min_units, draft.settings.max_units
    return max(draft.rng.randint(low, high), draft.rng.randint(low, high))


def _support(draft: _Draft, statement: Statement, room: int, memory: list[int]) -> list[int]:
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


def _tell(draft: _Draft, person: Person, topic: str, source: Source, needed: set[Fact]) -> Telling:
    """A passage on the topic, or only those of its sentences that state a needed fact."""
    story = "birth" if topic == "occupation" else topic
    telling = tell(draft.rng, person, story, source, draft.pool, draft.rng.choice(draft.others))
    return telling.keep(frozenset(needed)) if draft.rng.random() < draft.settings.excerpt_rate else telling


def _distractor(draft: _Draft, statements: list[Statement]) -> Telling:
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


def _any_source(draft: _Draft) -> Source:
    return draft.rng.choice((ATLAS, GAZETTE, FORUM))
