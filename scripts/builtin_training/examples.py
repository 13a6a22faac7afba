"""From lessons of the built-in world to examples in tokens, and the curriculum."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from transformers import PreTrainedTokenizerBase

from builtin_training.data import ramp
from builtin_training.example import Example, Span, View
from builtin_training.guidance import Guidance, Place
from builtin_training.lesson_memory import LessonSettings
from builtin_training.lessons import AnswerSentence, Lesson, sample_lessons
from ewe.evaluation.world.wording import ValueSpan

ASKING = (
    "When",
    "In which",
    "Where",
    "What",
    "Which",
    "Who was the teacher",
    "Under whom",
    "With whom",
    "As what",
    "At",
)
ASKING_PLACE = ("Where", "What")
"""How prompts begin that ask for one value, and those of them that ask for a place of birth."""

TELLINGS = 3
"""Answers under the same units: most of a step's time goes into encoding units."""

UNSPACED_SHARE = 0.1
"""Share of lessons whose units do not begin with a space, as other unit templates may have it."""


def curriculum(progress: float) -> LessonSettings:
    """Lesson settings at `progress` in [0, 1]: one or two units that hold what is asked and full names first, then more
    units, pronouns, and facts that memory lacks.
    """
    grown = ramp(progress, 0.05, 0.25)
    return LessonSettings(
        max_units=2 + round(6 * grown),
        pronoun_rate=0.3 * ramp(progress, 0.05, 0.2),
        missing_rate=0.04 + 0.08 * grown,
        rolling_rate=0.8 - 0.3 * grown,
    )


@dataclass(frozen=True)
class LessonExamples:
    """Draws examples: lessons of the curriculum, spelt with `tokenizer`; units are cut to `unit_tokens` tokens."""

    tokenizer: PreTrainedTokenizerBase
    unit_tokens: int

    def __call__(self, rng: random.Random, progress: float) -> list[Example]:
        """Examples that share their units, drawn from `rng` alone."""
        lessons = sample_lessons(rng, curriculum(progress), TELLINGS)
        before_unit = "" if rng.random() < UNSPACED_SHARE else " "
        return [self.encode(lesson, before_unit) for lesson in lessons]

    def encode(self, lesson: Lesson, before_unit: str = " ") -> Example:
        """BOS + prompt + answer + EOS with the views of each sentence; units are BOS + `before_unit` + text."""
        special = {"add_special_tokens": True, "split_special_tokens": True}
        spelt = [self.tokenizer(before_unit + unit, return_offsets_mapping=True, **special) for unit in lesson.units]
        units = tuple(tuple(ids["input_ids"][: self.unit_tokens]) for ids in spelt)
        places = [
            _places(sentences, unit["offset_mapping"][: self.unit_tokens], len(before_unit))
            for sentences, unit in zip(lesson.stated, spelt, strict=True)
        ]
        prompt = self.tokenizer(lesson.prompt, **special)["input_ids"]
        answer = self.tokenizer(
            "".join(sentence.text for sentence in lesson.answer), add_special_tokens=False, return_offsets_mapping=True
        )
        offsets = answer["offset_mapping"]
        starts = [0, *accumulate(len(sentence.text) for sentence in lesson.answer)]
        views = tuple(
            View(sentence.visible, tuple(lesson.weights[unit] for unit in sentence.visible))
            for sentence in lesson.answer
        )
        context = (*prompt, *answer["input_ids"], self.tokenizer.eos_token_id)
        sentence_of = [min(bisect_right(starts, start), len(views)) - 1 for start, _ in offsets]
        # A query works with the memory that the token it predicts is written under: memory changes between sentences.
        view_of = (*([0] * (len(prompt) - 1)), *sentence_of, len(views) - 1, len(views) - 1)
        spans, stated = _spans(lesson, starts, offsets, len(prompt))
        guidance = Guidance(self._spell)
        ends = [0, *accumulate(map(len, units))]
        copies = (
            guidance.copies(
                context,
                stated,
                place,
                [(ends[unit], units[unit], places[unit]) for unit in lesson.answer[place.sentence].visible],
            )
            for place in stated
        )
        return Example(
            units,
            context,
            len(prompt),
            views,
            view_of,
            tuple(spans),
            guidance.of_context(context, stated),
            tuple(goal for goals in copies for goal in goals),
            tuple(map(guidance.of_unit, units, places)),
        )

    def _spell(self, name: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(" " + name, add_special_tokens=False)["input_ids"])


def _places(sentences: Sequence[Sequence[ValueSpan]], offsets: list[tuple[int, int]], shift: int) -> list[Place]:
    """Where a unit states its facts, as far as its tokens go."""
    firsts = [start for start, _ in offsets]
    return [
        Place(
            span.fact, bisect_right(firsts, span.start + shift) - 1, bisect_right(firsts, span.end - 1 + shift), number
        )
        for number, spans in enumerate(sentences)
        for span in spans
        if offsets and span.end + shift <= offsets[-1][1]
    ]


def _spans(
    lesson: Lesson, starts: list[int], offsets: list[tuple[int, int]], shift: int
) -> tuple[list[Span], list[Place]]:
    """The tokens that spell each value (the space before it included in its first token), and the facts there."""
    firsts = [start for start, _ in offsets]
    spans, places = [], []
    for number, (sentence, start) in enumerate(zip(lesson.answer, starts, strict=False)):
        for span, known in zip(sentence.spans, sentence.known, strict=True):
            begin = bisect_right(firsts, start + span.start) - 1 + shift
            end = bisect_right(firsts, start + span.end - 1) + shift
            spans.append(Span(begin, end, span.fact.relation, known, _is_determined(lesson.prompt, sentence, span)))
            places.append(Place(span.fact, begin, end, number))
    return spans, places


def _is_determined(prompt: str, sentence: AnswerSentence, span: ValueSpan) -> bool:
    """Whether prompt and sentence up to a value leave one true value: not so where it stands before what is said of it
    ("In 1885 she published"), where year or place may follow ("born in"), or where either of two works or prizes may.
    """
    before = sentence.text[: span.start].strip()
    if span.fact.about and span.fact.about not in prompt + before:
        return False
    if span.fact.relation in ("work", "prize"):
        return any(other.fact.about == span.fact.value and other.start < span.start for other in sentence.spans)
    asked = prompt.startswith(ASKING)
    if before.lower().endswith("born in"):
        return asked and span.fact.relation == ("birth_place" if prompt.startswith(ASKING_PLACE) else "birth_year")
    return asked or before not in ("", "In", "The")
