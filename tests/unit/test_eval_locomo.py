"""`ewe eval locomo`: when an answer counts, what each system is given, figures by hand, and a run that goes on."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from e2e.llm_rig import tiny_llm
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.longterm.evaluation.locomo_questions import (
    LoCoMoQuestion,
    abstains,
    dates,
    draw,
    is_answered,
    read_conversations,
    token_f1,
)
from ewe.longterm.evaluation.locomo_recall import open_memories_of, scorer_of
from ewe.longterm.evaluation.locomo_report import LoCoMoAnswer, locomo_table, selective_rows, summarise_locomo
from ewe.longterm.evaluation.locomo_run import LoCoMoJob, LoCoMoRun

FIRST = ["I adopted a dog called Rex on 7 May 2023.", "Lovely! I paint lighthouses."]
SECOND = ["The weather was fine.", "I was at the market.", "Good to hear.", "See you soon.", "Bye."]
QUESTIONS = [
    {"question": "When did Ann adopt a dog?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
    {"question": "What does Ben paint?", "answer": "lighthouses", "evidence": ["D1:2"], "category": 4},
    {"question": "What does Ann paint?", "adversarial_answer": "lighthouses", "evidence": ["D1:2"], "category": 5},
]


def session(number, texts):
    speakers = ("Ann", "Ben")
    return [
        {"speaker": speakers[place % 2], "dia_id": f"D{number}:{place + 1}", "text": text}
        for place, text in enumerate(texts)
    ]


@pytest.fixture
def data(tmp_path):
    conversation = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": session(1, FIRST),
        "session_2_date_time": "2:00 pm on 9 June, 2023",
        "session_2": session(2, SECOND),
    }
    rows = [{"sample_id": f"c{number}", "conversation": conversation, "qa": QUESTIONS} for number in range(4)]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(rows))
    return path


def asked(answer):
    return LoCoMoQuestion("q", "c", "When?", "time", answer)


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("mental health", "It was for Mental Health.", True),
        ("mental health", "It was for health.", False),
        ("7 May 2023", "On May 7th, 2023", True),
        ("7 May 2023", "2023-05-07", True),
        ("7 May 2023", "on 8 May 2023", False),
        ("7 May 2023", "in May 2023", False),
        ("May 2023", "on 7 May 2023", True),
        ("2022", "Last year, in 2022.", True),
        ("2022", "2022-03-01: it was", True),
        ("The week before 9 June 2023", "the week before June 9, 2023", True),
        ("The week before 9 June 2023", "9 June 2023", False),
        ("Yes", "yesterday", False),
        ("Sweden", "", False),
    ],
)
def test_an_answer_is_contained_by_its_words_or_its_date(answer, reply, right):
    assert is_answered(asked(answer), reply) is right


def test_a_month_alone_needs_its_capital():
    assert list(dates("I may march in May")) == [(None, 5, None)]


def test_f1_and_abstention():
    assert token_f1("the red car", "a red bus") == pytest.approx(0.5)
    assert token_f1("red", "blue") == 0.0
    assert [abstains(text) for text in ("Unknown.", "It is not mentioned.", "I don't know", "", "Rex")] == [
        True
    ] * 4 + [False]


def test_parts_and_draws(data):
    assert [one.id for one in read_conversations(data, "tuning")] == ["c0", "c1", "c2"]
    [held_out] = read_conversations(data)
    assert (held_out.id, held_out.questions[2].answer) == ("c3", "")
    everything = read_conversations(data, "all")
    assert draw(everything, 4, 0) == draw(everything, 9, 0)[:4]
    assert draw(everything, 4, 0) != draw(everything, 4, 1)


def test_a_missing_file_says_where_the_set_is_from(tmp_path):
    told = CliRunner().invoke(app, ["eval", "locomo", "--data", str(tmp_path / "no.json")])
    assert told.exit_code == 2
    assert "github.com/snap-research/locomo" in told.output
    wrong = CliRunner().invoke(app, ["eval", "locomo", "--data", "x", "--systems", "perhaps"])
    assert "perhaps" in wrong.output


def test_scorers_share_what_they_believe_alike_and_rank_it(data):
    conversations = read_conversations(data)
    with open_memories_of(conversations, ["last turns", "none", "mma units", "default"], None) as memories:
        assert list(memories) == ["none", "mma", "default"]
        given = memories["default"].given(conversations[0].questions[1], 1)
    [passage] = given.passages
    assert (passage.text, passage.date) == ("Ben: Lovely! I paint lighthouses.", "2023-05-08")
    assert passage.veracity == given.confidence == pytest.approx(0.7)
    assert (scorer_of("no memory"), scorer_of("mma units")) == ("", "mma")


def test_a_run_gives_every_system_its_texts_and_goes_on(data):
    conversations = read_conversations(data)
    systems = ("no memory", "last turns", "none", "none units")
    job = LoCoMoJob(conversations, conversations[0].questions, systems, top_k=2, max_tokens=2)
    found: list[LoCoMoAnswer] = []
    with (
        closing(tiny_llm({"policy": "plain", "memory": {"veracity_weighting": "linear"}})) as llm,
        open_memories_of(conversations, systems, None) as memories,
    ):
        prompts: list[str] = []
        run, inner = LoCoMoRun(job, llm, memories), llm.client.run
        llm.client.run = lambda requests, tell: (
            prompts.extend(str(one.prompt) for one in requests),
            inner(requests, tell),
        )[1]
        run.run({(conversations[0].questions[0].id, "none")}, found.append)
    assert len(found) == 11
    assert [one.system for one in found if one.category == "adversarial"] == list(systems)
    assert any("I paint lighthouses" in one for one in prompts)
    last = next(one for one in prompts if "Bye." in one)
    assert "lighthouses" not in last.partition("\nWhat")[0]
    tokens = {one.system: one.prompt_tokens for one in found if one.question.endswith("/1")}
    assert tokens["no memory"] < tokens["none"] <= tokens["last turns"]
    assert all(not one.error for one in found)


def answer(number, system, contained, confidence=0.0, category="one hop", abstained=False):
    return LoCoMoAnswer(
        str(number), system, category, "", contained, float(contained), abstained, 10, confidence, 0.5, 1.0
    )


def test_figures_by_hand():
    found = [answer(n, "last turns", n == 0) for n in range(4)]
    found += [answer(n, "mma", n < 2, 0.9 - n / 10) for n in range(4)]
    found += [
        answer(9, "mma", False, 0.1, "adversarial", abstained=True),
        answer(9, "last turns", False, 0.0, "adversarial"),
    ]
    base, row = summarise_locomo(["last turns", "mma"], found, "last turns")
    assert (base.questions, base.contained.value, base.difference, base.abstained_there.value) == (4, 0.25, None, 0.0)
    assert (row.contained.value, row.difference.value, row.ratio.value) == (0.5, 0.25, 2.0)
    assert (row.adversarial, row.abstained_there.value, row.categories["one hop"].value) == (1, 1.0, 0.5)
    [chosen] = selective_rows(["last turns", "mma"], found)
    assert chosen.right == pytest.approx(0.6)
    assert chosen.constant == pytest.approx(0.4)
    assert chosen.cosine.value == pytest.approx(0.4)  # all alike: a constant
    assert chosen.confidence.value == pytest.approx((0 + 0 + 1 / 3 + 2 / 4 + 2 / 5) / 5)
    assert all(len(line) == len(locomo_table([row])[0]) for line in locomo_table([base, row])[1])
