"""Selective answering: what abstaining is worth, by hand; items of FEVER and LoCoMo; what the readers say."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.errors import InvalidRequestError
from ewe.longterm.evaluation.bench import AREA, Finding, Setup, run, summarise
from ewe.longterm.evaluation.memory_systems import open_system
from ewe.longterm.evaluation.protocol import Asked, Question, Reply, Turn
from ewe.longterm.evaluation.selective import CountedJudge, SelectiveBench, figures, quote, read_claims
from ewe.longterm.evaluation.selective_sets import Query, fever_items, locomo_items
from ewe.longterm.records import MemorySource


def query(*right):
    return Query(Question("?", 0.0, right[0] if right else "UNKNOWN", ("UNKNOWN",)), right)


def test_what_every_question_counts_by_hand():
    queries = [query("red"), query("red"), query("red"), query()]
    replies = [Reply("It is red.", 0.9), Reply("blue", 0.4), Reply("UNKNOWN", 0.0), Reply("UNKNOWN", 0.0)]
    found = figures(queries, replies)
    assert found["raw"] == [1, 0, 0, 1]
    assert found["selective"] == pytest.approx([1, 0, 0.2, 1])
    assert found["actionable"] == [1, 0]
    assert found["due"] == [0, 1]
    assert found["utility"] == pytest.approx([1, -1, 0.2, 0.2])
    assert found["utility_strict"] == pytest.approx([1, -2, 0.5, 0.5])
    # Abstaining pays below (.2 + 1) / 2 = .6 and below (.5 + 2) / 3 = .83.
    assert found["utility_expected"] == pytest.approx([1, 0.2, 0.2, 0.2])
    assert found["utility_strict_expected"] == pytest.approx([1, 0.5, 0.5, 0.5])
    assert found["confidence"] == [0.9, 0.4]
    assert found["answered_right"] == [1, 0]


def test_the_threshold_of_a_risk_is_set_by_the_first_half():
    queries = [query("red")] * 4
    replies = [Reply("red", 0.9), Reply("blue", 0.5), Reply("red", 0.95), Reply("blue", 0.6)]
    assert figures(queries, replies)["utility_risk"] == pytest.approx([1, 0.2])
    wrong = [Reply("blue", 0.9), Reply("blue", 0.5), Reply("red", 0.95), Reply("blue", 0.6)]
    assert figures(queries, wrong)["utility_risk"] == pytest.approx([0.2, 0.2])


def test_a_reply_may_state_its_confidence():
    assert figures([query("TRUE")], [Reply("TRUE, confidence 0.2500", 0.9)])["confidence"] == [0.25]


@pytest.fixture
def sets(tmp_path):
    """Three claims and a conversation with three questions, in the public sets' forms."""
    rows = [
        {"claim": f"Town {n} has a mayor.", "evidence": f"Town {n} has had a mayor.", "label": "supported"}
        for n in range(3)
    ]
    (tmp_path / "fever").mkdir()
    (tmp_path / "fever" / "claims.jsonl").write_text("\n".join(map(json.dumps, rows)))
    talk = {
        "sample_id": "talk",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "text": "I bought a kite.", "dia_id": "D1:1", "blip_caption": "a red kite"},
                {"speaker": "Bob", "text": "I sold my boat.", "dia_id": "D1:2"},
            ],
        },
        "qa": [
            {"question": "What did Ann buy?", "answer": "a kite", "evidence": ["D1:1"], "category": 4},
            {"question": "What did Bob sell?", "answer": "his boat", "evidence": ["D1:2"], "category": 4},
            {"question": "What did Ann sell?", "evidence": ["D1:2"], "category": 5, "adversarial_answer": "a boat"},
        ],
    }
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "conversations.json").write_text(json.dumps([talk]))
    return tmp_path


def test_a_third_of_the_evidence_is_left_out(sets):
    [item] = fever_items(sets / "fever" / "claims.jsonl", 10, 0).values()
    assert len(item.turns) == 2
    assert sorted(query.question.truth for query in item.queries) == ["TRUE", "TRUE", "UNKNOWN"]
    assert [query.right for query in item.queries if query.question.truth == "UNKNOWN"] == [()]


def test_a_conversation_and_its_adversarial_questions(sets):
    [item] = locomo_items(sets / "locomo" / "conversations.json", None).values()
    assert [turn.caption for turn in item.turns] == ["a red kite", ""]
    assert [query.right for query in item.queries] == [
        ("a kite", "Ann: I bought a kite."), ("his boat", "Bob: I sold my boat."), (),
    ]  # fmt: skip
    [one] = locomo_items(sets / "locomo" / "conversations.json", 1).values()
    assert len(one.queries) == 1


def test_a_file_without_conversations_is_refused(tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text("[]")
    with pytest.raises(InvalidRequestError, match="no list of conversations"):
        locomo_items(path, 5)


def test_a_folder_without_the_sets_is_refused(tmp_path):
    with pytest.raises(InvalidRequestError, match="--data"):
        fever_items(tmp_path / "claims.jsonl", 1, 0)


class WordJudge:
    """Supports a claim whose words all stand in the evidence."""

    def judge(self, pairs):
        rows = [
            (0.9, 0.05, 0.05) if set(claim.split()) <= set(text.split()) else (0.1, 0.1, 0.8) for text, claim in pairs
        ]
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


def test_the_reader_of_claims_weighs_what_it_recalled():
    question = Question("Is this true: the pool is open", 10.0, "TRUE", ())
    with open_system("default", lambda asked: read_claims(asked, WordJudge())) as system:
        system.begin("pool")
        assert system.answer([question])[0].text.endswith("confidence 0.0000")
        system.remember(Turn("yes the pool is open", MemorySource("user", "Ann", 0.7), 0.0))
        [reply] = system.answer([question])
    assert reply.text == f"TRUE, confidence {0.9 * reply.confidence:.4f}"
    [near] = reply.recalled
    asked = Asked(question, (replace(near, similarity=0.5),))
    assert read_claims([asked], WordJudge()) == [f"UNKNOWN, confidence {0.45 * near.belief:.4f}"]


def test_a_bench_plays_and_draws(sets, tmp_path):
    counted = CountedJudge(WordJudge())
    found = locomo_items(sets / "locomo" / "conversations.json", None)
    bench = SelectiveBench("locomo", found, counted, quote, counted)
    findings: list[Finding] = []
    run(bench, ["oracle", "none", "mma judged"], quote, (), findings.append)
    rows = {row.system: row.figures for row in summarise(bench, ["oracle", "none", "mma judged"], findings)}
    assert rows["oracle"]["raw"].value == 1
    assert rows["none"]["raw"].value == pytest.approx(2 / 3)
    assert rows["none"][AREA].value == pytest.approx(1 / 3)
    bench.plot(findings, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert Setup().cases is None


def test_the_command_asks_for_the_data():
    result = CliRunner().invoke(app, ["eval", "memory", "--bench", "selective"])
    assert result.exit_code == 2
