"""`ewe eval qa`: questions read, answers graded, the same passages at every call, runs that go on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from e2e.llm_rig import loaded
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ewe.async_llm import AsyncLLM
from ewe.cli.main import app
from ewe.config import Config
from ewe.errors import ConfigError
from ewe.evaluation.qa_questions import Question, beside, read_questions
from ewe.evaluation.qa_report import Answer, Timing, summarise, table
from ewe.evaluation.qa_run import Job, run, systems_of
from ewe.evaluation.tables import Interval, markdown_table
from ewe.retrieval.datastore import Datastore
from ewe.types import Passage

PASSAGES = [Passage(f"p{number}", f"The city of {name} lies by the sea.", name) for number, name in enumerate("ABCDEF")]
QUESTION = Question("q", "Where?", ("the Sea", "harbour town"), PASSAGES[2])
SETTINGS = {"memory": {"unit_tokens": 24, "retrieval_units": 3}, "cache": {"num_blocks": 300}}
SETTINGS |= {"retrieval": {"retriever": "bm25"}}


def write(path, *lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("text", "exact", "contained"),
    [
        ("Sea.", True, True),
        ("the  SEA", True, True),
        ("It lies by the sea!", False, True),
        ("A harbour-town", False, False),
        ("a harbour the town", True, True),
        ("overseas", False, False),
        ("", False, False),
    ],
)
def test_answers_are_compared_as_squad_does(text, exact, contained):
    assert (QUESTION.is_exact(text), QUESTION.is_contained(text)) == (exact, contained)


@given(st.integers(1, 6), st.text(max_size=5))
def test_the_right_passage_is_among_k_and_fewer_are_kept_by_more(k, name):
    question = replace(QUESTION, id=name)
    found = beside(question, PASSAGES, k)
    assert len({passage.id for passage in found}) == k
    assert PASSAGES[2] in found
    assert found == beside(question, PASSAGES, k)
    assert {passage.id for passage in found} >= {passage.id for passage in beside(question, PASSAGES, max(1, k - 1))}


def test_the_right_passage_stands_at_every_place():
    places = {beside(replace(QUESTION, id=str(number)), PASSAGES, 4).index(PASSAGES[2]) for number in range(60)}
    assert places == {0, 1, 2, 3}
    with pytest.raises(ConfigError, match="7 passages are asked for, and there are 6"):
        Job([QUESTION], PASSAGES, systems_of((7,), has_datastore=False), max_tokens=1, num_timed=0)


def test_questions_name_their_passage_by_text_or_id(tmp_path):
    lines = [
        {"question": "Who?", "answers": ["Ada"], "passage": "Ada wrote it.", "title": "Ada"},
        {"id": "x", "question": "Where?", "answers": ["sea"], "passage_id": "p1"},
        {"question": "Where?", "answers": ["sea"], "passage": "p3"},
        {"question": "Nobody knows?", "answers": [], "passage": "p3"},
    ]
    first, second, third = read_questions(write(tmp_path / "q.jsonl", *lines), PASSAGES)
    assert (first.id, first.passage.text, first.passage.title) == ("1", "Ada wrote it.", "Ada")
    assert (second.id, second.passage, third.passage) == ("x", PASSAGES[1], PASSAGES[3])


def test_squads_own_files_are_read(tmp_path):
    item = {"id": "a", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
    article = {"title": "Ada_Lovelace", "paragraphs": [{"context": "Ada wrote it.", "qas": [item]}]}
    [question] = read_questions(write(tmp_path / "q.json", {"data": [article]}))
    assert (question.answers, question.passage.title) == (("Ada",), "Ada Lovelace")


BAD = {
    "no JSON": ("{", "cannot read"),
    "no question": ({"answers": ["x"], "passage": "x"}, "q.jsonl:1: expected a JSON object with question"),
    "answers": ({"question": "Who?", "answers": "x", "passage": "x"}, "q.jsonl:1: answers must be a list"),
    "no passage": ({"question": "Who?", "answers": ["x"]}, "q.jsonl:1: name the passage"),
    "unknown id": ({"question": "Who?", "answers": ["x"], "passage_id": "p9"}, "holds no passage 'p9'"),
    "no answer": ({"question": "Who?", "answers": [], "passage": "x"}, "no question with an answer"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_file_is_named(tmp_path, case):
    line, reason = BAD[case]
    with pytest.raises(ConfigError, match=reason):
        read_questions(write(tmp_path / "q.jsonl", line), PASSAGES)


def test_intervals_are_wilsons():
    share = Interval.of_share(5, 24)
    assert (round(share.low, 3), round(share.high, 3)) == (0.092, 0.405)
    assert Interval.of_share(0, 10).low == 0.0
    assert Interval.of_share(10, 10).high == 1.0


def ask(job, config, answered=(), timed=(), datastore=None):
    found = []
    done = {*((Answer, *key) for key in answered), *((Timing, *key) for key in timed)}
    run(job, config, loaded(), datastore, done, found.append)
    answers = [item for item in found if isinstance(item, Answer)]
    return answers, [item for item in found if isinstance(item, Timing)]


def test_every_system_is_asked_and_only_one_unit_is_encoded_again():
    questions = [replace(QUESTION, id=str(number), text="Where is the city of C?") for number in range(3)]
    datastore = Datastore(PASSAGES)
    job = Job(questions, PASSAGES, systems_of((1, 3), has_datastore=True), max_tokens=4, num_timed=1)
    names = [system.name for system in job.systems]
    answers, timings = ask(job, Config.from_mapping(SETTINGS), datastore=datastore)
    assert {(answer.question, answer.system) for answer in answers} == {
        (str(number), name) for number in range(3) for name in names
    }
    assert [answer.error for answer in answers] == [""] * len(answers)
    by_system = {timing.system: timing for timing in timings}
    assert set(by_system) == set(names)
    units, prompt, nothing = by_system["as units, k = 3"], by_system["in the prompt, k = 3"], by_system["nothing"]
    assert units.unit_tokens > 2 * units.changed_unit_tokens > 0
    assert units.prompt_tokens == nothing.prompt_tokens < prompt.prompt_tokens < prompt.changed_prompt_tokens
    assert nothing.unit_tokens == prompt.unit_tokens == 0
    assert by_system["retrieved"].unit_tokens > 0
    rows = summarise(names, answers, timings)
    assert [(row.system, row.questions) for row in rows] == [(name, 3) for name in names]
    assert len(markdown_table(*table(rows)).splitlines()) == 2 + len(names)


def test_prompts_hold_the_passages_and_units_are_documents_beside_the_bare_question(monkeypatch):
    asked, generate = [], AsyncLLM.generate

    async def recorded(llm, prompt, params, documents):
        asked.append((prompt, params.max_tokens, documents))
        return await generate(llm, prompt, params, documents)

    monkeypatch.setattr(AsyncLLM, "generate", recorded)
    ask(Job([QUESTION], PASSAGES, systems_of((2,), has_datastore=False), 6, 0), Config.from_mapping(SETTINGS))
    passages = beside(QUESTION, PASSAGES, 2)
    lines = "\n".join(f"{passage.title}: {passage.text}" for passage in passages)
    assert asked == [("Where?", 6, None), (f"Context: {lines}\nWhere?", 6, None), ("Where?", 6, passages)]


def test_a_question_that_cannot_be_asked_is_wrong_and_counted():
    long = [replace(passage, text=passage.text * 20) for passage in PASSAGES]
    question = replace(QUESTION, passage=long[2])
    job = Job([question], long, systems_of((3,), has_datastore=False), max_tokens=4, num_timed=1)
    answers, timings = ask(job, Config.from_mapping(SETTINGS))
    name = "in the prompt, k = 3"
    assert [answer.system for answer in answers if answer.error] == [name]
    assert name not in {timing.system for timing in timings}
    [row] = summarise([name], answers, timings)
    assert (row.failed, row.contained.value, row.seconds) == (1, 0.0, None)


def test_a_run_goes_on_where_it_was_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("ewe.engine.models.loader.load_model", lambda *_, **__: loaded())
    questions = [
        {"question": f"Where is {name}?", "answers": [name], "passage": f"{name} lies here."} for name in "ABCD"
    ]
    output, figures = tmp_path / "out.jsonl", tmp_path / "figures.json"
    command = ["eval", "qa", "--questions", str(write(tmp_path / "q.jsonl", *questions)), "--top-k", "1", "--k", "2"]
    command += ["--timed", "1", "--max-tokens", "3", "--output", str(output), "--json", str(figures)]
    command += ["--set", "memory.unit_tokens=24", "--set", "cache.num_blocks=300", "--set", "verifier=none"]
    command += ["--set", "datastore=none"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    lines = output.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 4 * 5 + 5
    output.write_bytes(b"".join(lines[:9]) + lines[9][:20])
    result = CliRunner().invoke(app, [*command, "--markdown"])
    assert result.exit_code == 0, result.output
    assert "| as units, k = 2 | 4 |" in result.stdout
    again = output.read_bytes().splitlines(keepends=True)
    assert again[:9] == lines[:9]
    assert len(again) == len(lines)
    assert [row["questions"] for row in json.loads(figures.read_text())["systems"]] == [4] * 5
    changed = CliRunner().invoke(app, [*command, "--set", "memory.merge=plain"])
    assert changed.exit_code == 2
    assert 'memory.merge was "auto", is now "plain"' in changed.stderr
