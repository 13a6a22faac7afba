"""Lessons: prompts with memory units and the answers that a model should learn to write from them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from random import Random

import numpy as np

from builtin_training.answers import Statement, compose_answer, retell
from builtin_training.lesson_memory import Draft, LessonSettings, fixed_memory, rolling_memory
from ewe.evaluation.world import names
from ewe.evaluation.world.articles import Telling
from ewe.evaluation.world.people import EntityPool, Fact, draw_person
from ewe.evaluation.world.phrasings import QUESTIONS
from ewe.evaluation.world.wording import ValueSpan
from ewe.evaluation.world.world import KINDS, ask, draw_prompt
from ewe.types import Passage


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
    """A prompt, an answer, and the units ("Title: text") with their weights in (0, 1], their passages, and, per unit
    and sentence, the values stated, with their places in the unit.
    """

    prompt: str
    answer: tuple[AnswerSentence, ...]
    units: tuple[str, ...]
    weights: tuple[float, ...]
    passages: tuple[Passage, ...]
    stated: tuple[tuple[tuple[ValueSpan, ...], ...], ...]

    @property
    def text(self) -> str:
        """Prompt and answer."""
        return self.prompt + "".join(sentence.text for sentence in self.answer)


def sample_lesson(rng: Random | np.random.Generator, settings: LessonSettings | None = None) -> Lesson:
    """One lesson, drawn from `rng` alone."""
    if isinstance(rng, np.random.Generator):
        rng = Random(int(rng.integers(2**63)))
    return sample_lessons(rng, settings or LessonSettings(), 1)[0]


def sample_lessons(rng: Random, settings: LessonSettings, tellings: int) -> list[Lesson]:
    """A lesson and `tellings` - 1 more under the same units (fewer if they hold too little): of a life, in other words
    and another order; of a question, other questions that the units answer.
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
    draft = Draft(rng, settings, pool, subjects, others, weighted, rng.randint(1, 2), [], [])
    if rng.random() < settings.no_memory_rate:
        visible: list[list[int]] = [[] for _ in statements]
    elif rng.random() < settings.rolling_rate:
        visible = rolling_memory(draft, statements)
    else:
        visible = fixed_memory(draft, statements)
    lessons = [_finish(draft, prompt.text, statements, visible)]
    for _ in range(tellings - 1 if prompt.kind == "life" else 0):
        other_prompt = draw_prompt(rng, prompt.kind, subject, others[-1])
        retold, seen = _retell(rng, statements, visible, settings.pronoun_rate)
        lessons.append(_finish(draft, other_prompt.text, retold, seen))
    for question in _answerable(draft, visible[-1], tellings - 1) if prompt.kind == "question" else []:
        lessons.append(_finish(draft, *question, [visible[-1]]))
    return lessons


def _answerable(draft: Draft, visible: list[int], count: int) -> list[tuple[str, list[Statement]]]:
    """At most `count` questions about anybody in memory that the visible units answer, with their answers."""
    people = [*draft.subjects.values(), *draft.others]
    known = [
        (person, slot)
        for person in people
        for slot in QUESTIONS
        if any(draft.states(index, person.fact(slot)) for index in visible)
    ]
    questions = []
    for person, slot in draft.rng.sample(known, min(count, len(known))):
        prompt = ask(draft.rng, person, slot)
        questions.append((prompt.text, compose_answer(draft.rng, prompt, {person.name: person}, 0.0)))
    return questions


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


def _finish(draft: Draft, prompt: str, statements: list[Statement], visible: list[list[int]]) -> Lesson:
    sentences = []
    for statement, indices in zip(statements, visible, strict=True):
        shift = 1 + len(statement.lead_in)
        spans = tuple(_shifted(span, shift) for span in statement.wording.spans)
        known = tuple(any(draft.states(index, span.fact) for index in indices) for span in spans)
        sentences.append(AnswerSentence(" " + statement.text, spans, tuple(indices), known))
    passages = tuple(unit.passage(f"lesson-{index}") for index, unit in enumerate(draft.units))
    units = tuple(f"{passage.title}: {passage.text}" for passage in passages)
    stated = tuple(_spans(unit) for unit in draft.units)
    return Lesson(prompt, tuple(sentences), units, tuple(draft.weights), passages, stated)


def _spans(unit: Telling) -> tuple[tuple[ValueSpan, ...], ...]:
    """Per sentence of a unit the values stated, with their places in "Title: text"."""
    starts = accumulate((len(sentence.text) + 1 for sentence in unit.sentences), initial=len(unit.title) + 2)
    return tuple(
        tuple(_shifted(span, start) for span in sentence.spans)
        for start, sentence in zip(starts, unit.sentences, strict=False)
    )


def _shifted(span: ValueSpan, by: int) -> ValueSpan:
    """The same value in a text in which its sentence begins `by` code points later."""
    return ValueSpan(span.start + by, span.end + by, span.fact)
