"""`ewe doctor`: its questions, what it measures, and its verdict in words."""

from __future__ import annotations

from collections import Counter

import pytest
from e2e.llm_rig import loaded
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import Config
from ewe.evaluation import doctor
from ewe.evaluation.doctor import Diagnosis, Reading, Score, Tally, builtin_questions, diagnose, most_answers, verdict
from ewe.evaluation.qa_report import Answer
from ewe.evaluation.qa_run import PROMPT, UNITS, System

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
                if (Answer, question.id, system.name) in done:
                    continue
                hit = number < count
                on_result(Answer(question.id, system.name, "", exact=hit, contained=hit))

    return run


def test_it_counts_right_answers_per_way_and_tells_of_each(monkeypatch):
    counts = {("nothing", 0): 1, (PROMPT, 1): 10, (PROMPT, 4): 8, (UNITS, 1): 9, (UNITS, 4): 3}
    monkeypatch.setattr(doctor, "run", answers_by(lambda place, k, config: counts[place, k]))
    monkeypatch.setattr(doctor, "placements", lambda: ("bare",))
    told = []
    tally = Tally()
    found = diagnose(Config(), None, tally, lambda: told.append(1))
    assert (
        found
        == tally.diagnosis
        == Diagnosis(
            Score(1, 8),
            Reading("", Score(10, 12), Score(8, 8)),
            (Reading("bare", Score(9, 12), Score(3, 8)),),
        )
    )
    assert len(told) == most_answers() == 48


def test_no_further_placement_is_tried_once_one_is_read_well(monkeypatch):
    asked = []

    def right(place, k, config):
        asked.append(config.memory.placement)
        return 8

    monkeypatch.setattr(doctor, "run", answers_by(right))
    monkeypatch.setattr(doctor, "placements", lambda: ("in_prompt", "bare"))
    found = diagnose(Config(), None, Tally())
    assert set(asked) == {"auto", "in_prompt"}
    assert found.units[1] == Reading("bare", Score(), Score())
    assert "Set memory.placement to in_prompt." in verdict(found)


def test_a_tally_can_be_read_at_any_time():
    assert str(Tally().diagnosis.prompt.one) == "-"
    assert not Tally().diagnosis.reads
    tally = Tally(right=Counter({("", System(PROMPT, 1)): 2}), answered=Counter({("", System(PROMPT, 1)): 3}))
    assert str(tally.diagnosis.prompt.one) == "2 of 3"


def reading(name, one, several):
    return Reading(name, Score(one, 20), Score(several, 10))


def diagnosis(nothing, prompt, *units):
    return Diagnosis(Score(nothing, 10), reading("", *prompt), tuple(reading(*unit) for unit in units))


CASES = {
    "reads": (
        diagnosis(0, (15, 8), ("bare", 1, 0), ("in_prompt", 14, 8)),
        True,
        "reads one unit: 14 of 20 right answers, 15 of 20",
    ),
    "place": (
        diagnosis(0, (15, 8), ("bare", 1, 0), ("in_prompt", 14, 8)),
        True,
        "Set memory.placement to in_prompt.",
    ),
    "part": (diagnosis(0, (15, 8), ("", 8, 8)), True, "reads in part one unit"),
    "several": (diagnosis(0, (15, 8), ("", 15, 3)), True, "keep few, with memory.retrieval_units"),
    "not": (diagnosis(0, (15, 8), ("bare", 2, 0)), False, "does not read its memory"),
    "no prompt": (diagnosis(0, (2, 1), ("", 2, 1)), True, "little use of a passage even in its prompt"),
    "knows": (diagnosis(4, (15, 8), ("", 15, 8)), True, "answers 4 of 10 without any passage"),
    "nothing at all": (diagnosis(0, (0, 0), ("bare", 0, 0)), False, "little use of a passage"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_says_what_was_found(case):
    found, reads, words = CASES[case]
    assert found.reads == reads
    assert any(words in sentence for sentence in verdict(found))
    assert ("Set memory.placement" in " ".join(verdict(found))) == (case in ("reads", "place"))


def test_the_command_asks_a_real_engine_and_says_by_its_status_that_nothing_is_read(monkeypatch):
    monkeypatch.setattr("ewe.engine.models.loader.load_model", lambda *_, **__: loaded())
    monkeypatch.setattr(doctor, "_MAX_TOKENS", 2)
    result = CliRunner().invoke(app, ["doctor", *SETTINGS])
    assert result.exit_code == 1, result.output
    assert "not at all" in result.stdout
    assert "little use of a passage even in its prompt" in result.stdout


def test_the_command_says_what_it_found_so_far_when_it_is_stopped(monkeypatch):
    def run(job, config, loaded, datastore, done, on_result):
        for question in job.questions[:3]:
            on_result(Answer(question.id, "nothing", "", exact=False, contained=question is not job.questions[0]))
        raise KeyboardInterrupt

    monkeypatch.setattr("ewe.engine.models.loader.load_model", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "run", run)
    result = CliRunner().invoke(app, ["doctor", *SETTINGS])
    assert result.exit_code == 130
    assert "stopped after 3 of at most 68 answers" in result.stderr
    assert "2 of 3" in result.stdout
    assert "reads" not in result.stdout
