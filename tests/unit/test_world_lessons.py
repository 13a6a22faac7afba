"""Lessons: what is visible states what the answer says, and heavier units win."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from builtin_training.lesson_memory import LessonSettings
from builtin_training.lessons import Lesson, sample_lesson, sample_lessons

from ewe.evaluation.world import names
from ewe.evaluation.world.people import Fact
from ewe.evaluation.world.world_grammar import read_sentence

COUNT = 120


def draw(settings: LessonSettings | None = None) -> list[Lesson]:
    return [sample_lesson(Random(seed), settings) for seed in range(COUNT)]


@pytest.fixture(scope="module")
def lessons() -> list[Lesson]:
    return draw()


def unit_says(unit: str, fact: Fact) -> bool:
    return any(fact.subject in part and fact.value in part for part in unit.split(". "))


def test_same_generator_same_lesson(lessons: list[Lesson]):
    assert [sample_lesson(Random(seed)) for seed in range(20)] == lessons[:20]
    assert sample_lesson(np.random.default_rng(1)) == sample_lesson(np.random.default_rng(1))


def test_text_is_prompt_and_sentences_with_values_in_their_places(lessons: list[Lesson]):
    for lesson in lessons:
        assert lesson.answer
        assert lesson.text == lesson.prompt + "".join(sentence.text for sentence in lesson.answer)
        for sentence in lesson.answer:
            assert sentence.text.startswith(" ")
            assert sentence.text.endswith(".")
            assert sentence.spans
            for span in sentence.spans:
                assert sentence.text[span.start : span.end] == span.fact.value


def test_known_facts_stand_in_visible_units(lessons: list[Lesson]):
    for lesson in lessons:
        for sentence in lesson.answer:
            assert len(set(sentence.visible)) == len(sentence.visible) <= 8
            for span, known in zip(sentence.spans, sentence.known, strict=True):
                if known:
                    assert any(unit_says(lesson.units[index], span.fact) for index in sentence.visible)


def test_units_are_titled_passages_with_weights(lessons: list[Lesson]):
    for lesson in lessons:
        assert len(lesson.units) == len(lesson.weights) == len(lesson.passages) <= 14
        assert list(lesson.units) == [f"{passage.title}: {passage.text}" for passage in lesson.passages]
        assert all(0 < weight <= 1 for weight in lesson.weights)


def share_known(lessons: list[Lesson]) -> float:
    known = [known for lesson in lessons for sentence in lesson.answer for known in sentence.known]
    return sum(known) / len(known)


def test_missing_rates_are_obeyed(lessons: list[Lesson]):
    everything = LessonSettings(min_units=8, missing_rate=0.0, no_memory_rate=0.0, rolling_rate=1.0, excerpt_rate=0.0)
    assert share_known(draw(everything)) > 0.98
    assert 0.6 < share_known(lessons) < 0.9
    none = draw(LessonSettings(no_memory_rate=1.0))
    assert all(not lesson.units for lesson in none)
    assert share_known(none) == 0.0
    assert share_known(draw(LessonSettings(missing_rate=1.0, rolling_rate=1.0))) < 0.02


def test_number_of_units_stays_within_bounds():
    for units in (1, 3):
        settings = LessonSettings(min_units=units, max_units=units, rolling_rate=0.0, no_memory_rate=0.0)
        assert {len(lesson.units) for lesson in draw(settings)} == {units}


def stated_by_unit(lesson: Lesson) -> list[set[Fact]]:
    """The facts of every unit, read back by the grader's patterns."""
    units = []
    for passage in lesson.passages:
        sentences = [part.removesuffix(".") + "." for part in passage.text.split(". ")]
        units.append({fact for sentence in sentences for fact in read_sentence(sentence).facts})
    return units


def denials(lesson: Lesson) -> list[tuple[list[float], list[float]]]:
    """Per value in the answer that some visible unit denies: weights of the visible units for it and against it."""
    units, result = stated_by_unit(lesson), []
    for sentence in lesson.answer:
        for fact in sentence.facts:
            if fact.relation in ("work", "prize"):
                continue  # a person has two, so another one is no denial
            key = (fact.subject, fact.relation, fact.about)
            others = [
                i for i in sentence.visible for f in units[i] if key == (f.subject, f.relation, f.about) and f != fact
            ]
            if others:
                supporting = [lesson.weights[i] for i in sentence.visible if fact in units[i]]
                result.append((supporting, [lesson.weights[i] for i in others]))
    return result


def test_the_answer_follows_the_heavier_unit():
    settings = LessonSettings(weighted_rate=1.0, contradicted_rate=1.0, no_memory_rate=0.0, min_units=6)
    pairs = [pair for lesson in draw(settings) for pair in denials(lesson)]
    assert len(pairs) > 80
    assert all(supporting and max(supporting) > max(against) for supporting, against in pairs)


def test_without_weights_nothing_is_contradicted():
    lessons = draw(LessonSettings(weighted_rate=0.0))
    assert not [pair for lesson in lessons for pair in denials(lesson)]
    assert {weight for lesson in lessons for weight in lesson.weights} == {1.0}


def test_lessons_are_about_training_people_unless_asked_otherwise(lessons: list[Lesson]):
    for lesson, expected in ((lessons[0], "train"), (sample_lesson(Random(0), LessonSettings(split="test")), "test")):
        subjects = {fact.subject for sentence in lesson.answer for fact in sentence.facts}
        assert {names.split_of(subject) for subject in subjects} == {expected}


def test_pronoun_rate():
    def pronouns(rate: float) -> float:
        later = [s.text for lesson in draw(LessonSettings(pronoun_rate=rate)) for s in lesson.answer[1:]]
        return sum(any(f" {word} " in text for word in ("He", "She", "They")) for text in later) / len(later)

    assert pronouns(0.0) == 0.0
    assert pronouns(1.0) > 0.4


def test_a_life_is_told_again_in_other_words_under_the_same_units():
    settings = LessonSettings(kind_weights=(1.0, 0.0, 0.0, 0.0), no_memory_rate=0.0)
    for seed in range(30):
        first, *again = sample_lessons(Random(seed), settings, tellings=3)
        assert first == sample_lesson(Random(seed), settings)
        assert len(again) == 2
        for lesson in again:
            assert (lesson.units, lesson.weights) == (first.units, first.weights)
            assert [s.text for s in lesson.answer] != [s.text for s in first.answer]
            assert {f.subject for s in lesson.answer for f in s.facts} == {f.subject for f in first.answer[0].facts}
            for sentence in lesson.answer:
                for span, known in zip(sentence.spans, sentence.known, strict=True):
                    assert sentence.text[span.start : span.end] == span.fact.value
                    assert not known or any(unit_says(lesson.units[i], span.fact) for i in sentence.visible)


def test_a_question_is_followed_by_others_that_the_units_answer():
    settings = LessonSettings(kind_weights=(0.0, 1.0, 0.0, 0.0), no_memory_rate=0.0, min_units=4)
    groups = [sample_lessons(Random(seed), settings, tellings=3) for seed in range(30)]
    assert sum(len(group) for group in groups) > 80
    for first, *again in groups:
        for lesson in again:
            assert (lesson.units, lesson.weights) == (first.units, first.weights)
            [sentence] = lesson.answer
            assert any(sentence.known)
            assert sentence.facts[0].subject in lesson.prompt
