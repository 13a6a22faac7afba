"""`ewe doctor`: its questions, what it measures, and its verdict in words."""

from __future__ import annotations

import pytest
from e2e.llm_rig import loaded
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import Config
from ewe.eval import doctor
from ewe.eval.doctor import Diagnosis, Reading, builtin_questions, diagnose, num_answers, verdict
from ewe.eval.qa_report import Answer
from ewe.eval.qa_run import PROMPT, UNITS

SETTINGS = ["--set", "memory.unit_tokens=24", "--set", "cache.num_blocks=300", "--set", "datastore=none"]


def test_each_question_is_answered_by_its_own_passage_only():
    questions = builtin_questions()
    assert len(questions) == 20
    for question in questions:
        assert question.is_contained(question.passage.text), question
        assert not question.is_contained(question.text), question
    assert len({question.passage.title for question in questions}) == 20


def answers_by(right):
    """A run in which a system answers as many questions as `right(place, k, settings)` says."""

    def run(job, config, loaded, datastore, done, on_result):
        for system in job.systems:
            count = right(system.place, system.k, config)
            for number, question in enumerate(job.questions):
                hit = number < count
                on_result(Answer(question.id, system.name, "", exact=hit, contained=hit))

    return run


def test_it_counts_right_answers_per_way_and_tells_of_each(monkeypatch):
    counts = {("nothing", 0): 1, (PROMPT, 1): 15, (PROMPT, 4): 12, (UNITS, 1): 9, (UNITS, 4): 3}
    monkeypatch.setattr(doctor, "run", answers_by(lambda place, k, config: counts[place, k]))
    monkeypatch.setattr(doctor, "placements", lambda: ("bare",))
    told = []
    found = diagnose(Config(), None, lambda: told.append(1))
    assert found == Diagnosis(1, Reading("", 15, 12, 20), (Reading("bare", 9, 3, 20),))
    assert len(told) == num_answers() == 100


def diagnosis(nothing, prompt, *units):
    return Diagnosis(nothing, Reading("", *prompt, 20), tuple(Reading(name, *right, 20) for name, *right in units))


CASES = {
    "reads": (
        diagnosis(0, (15, 12), ("bare", 1, 0), ("in_prompt", 14, 11)),
        True,
        "reads one unit: 14 right answers, 15",
    ),
    "place": (
        diagnosis(0, (15, 12), ("bare", 1, 0), ("in_prompt", 14, 11)),
        True,
        "Set memory.placement to in_prompt.",
    ),
    "part": (diagnosis(0, (15, 12), ("", 8, 11)), True, "reads in part one unit"),
    "several": (diagnosis(0, (15, 12), ("", 15, 4)), True, "keep few, with memory.retrieval_units"),
    "not": (diagnosis(0, (15, 12), ("bare", 2, 0)), False, "does not read its memory"),
    "no prompt": (diagnosis(0, (2, 1), ("", 2, 1)), True, "little use of a passage even in its prompt"),
    "knows": (diagnosis(9, (15, 12), ("", 15, 12)), True, "answers 9 of 20 without any passage"),
    "nothing at all": (diagnosis(0, (0, 0), ("bare", 0, 0)), False, "little use of a passage"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_says_what_was_found(case):
    found, reads, words = CASES[case]
    assert found.reads == reads
    assert any(words in sentence for sentence in verdict(found))
    assert ("Set memory.placement" in " ".join(verdict(found))) == (case in ("reads", "place"))


def test_the_command_asks_a_real_engine_and_says_by_its_status_that_nothing_is_read(monkeypatch):
    monkeypatch.setattr("ewe.engine.loader.load_model", lambda *_, **__: loaded())
    monkeypatch.setattr(doctor, "_MAX_TOKENS", 2)
    result = CliRunner().invoke(app, ["doctor", *SETTINGS])
    assert result.exit_code == 1, result.output
    assert "not at all" in result.stdout
    assert "little use of a passage even in its prompt" in result.stdout
