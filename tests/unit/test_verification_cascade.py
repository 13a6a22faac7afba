"""The judge "reader" is asked only of what the built-in judge leaves open."""

import numpy as np
import pytest

from ewe.config import VerificationConfig
from ewe.errors import JudgeError
from ewe.types import Passage, ScoredPassage, Verdict, VerificationRequest
from ewe.verification.claim_reading import CascadeReader
from ewe.verification.combination import Thresholds
from ewe.verification.judges.load import check_judge
from ewe.verification.judges.protocol import ReadingWindow
from ewe.verification.open_verifier import open_verifier

MILL = Passage("mill", "Ada Lind opened a mill in Oslo in 1931. It burned down after a year.", title="Ada Lind")
WOOL = Passage("wool", "The mills of Oslo made fine wool.", title="Oslo")
COPY = "Ada Lind opened a mill in Oslo in 1931."
CHANGED = "Ada Lind opened a mill in Oslo in 1951."
OWN_WORDS = "Her business soon went up in flames."


class Finds:
    def retrieve(self, queries, top_k):
        return [[ScoredPassage(passage, 1.0) for passage in (MILL, WOOL)] for _ in queries]


class Reader:
    """Supports whatever it is asked, or refutes it, and remembers the claims."""

    name, thresholds = "reader", Thresholds(0.6, 0.6, 0.0)

    def __init__(self, row=(0.9, 0.05, 0.05), max_characters=1000):
        self.window = ReadingWindow(max_characters)
        self.row, self.pairs, self.loads = row, [], 0

    def judge(self, pairs):
        self.pairs += pairs
        return np.array([self.row] * len(pairs), np.float32).reshape(-1, 3)

    def warm(self):
        self.loads += 1


def check(judge, *sentences, **more):
    verifier = open_verifier("claims", Finds(), VerificationConfig(judge="reader"), device="cpu", judge=judge, **more)
    return verifier.verify([VerificationRequest("", "", sentence) for sentence in sentences])


@pytest.mark.parametrize("row", [(0.05, 0.9, 0.05), (0.9, 0.05, 0.05)])
def test_copies_and_near_copies_are_decided_before_the_reader_is_asked(row):
    judge = Reader(row)
    results = check(judge, COPY, CHANGED)
    assert [one.verdict for one in results] == [Verdict.SUPPORTED, Verdict.REFUTED]
    assert results[0].evidence[0].passage.id == results[1].evidence[0].passage.id == "mill"
    assert judge.pairs == []


def test_what_is_left_open_is_read_in_one_call_by_the_reader():
    judge = Reader()
    results = check(judge, COPY, OWN_WORDS, "The town was known for its cloth.")
    assert [one.verdict for one in results] == [Verdict.SUPPORTED] * 3
    assert [claim for _, claim in judge.pairs] == [OWN_WORDS, "The town was known for its cloth."]
    assert "burned down" in judge.pairs[0][0]
    assert "Oslo: The mills" in judge.pairs[0][0]


def test_what_both_leave_open_is_open_and_a_closed_world_refutes_it():
    nothing = (0.1, 0.1, 0.8)
    assert check(Reader(nothing), OWN_WORDS)[0].verdict is Verdict.INCONCLUSIVE
    assert check(Reader(nothing), OWN_WORDS, assume_complete=True)[0].claims[0].reason


def test_what_is_refuted_together_is_read_again_excerpt_by_excerpt():
    judge = Reader((0.05, 0.9, 0.05), max_characters=80)
    assert check(judge, "Nobody in Oslo had a mill for wool.")[0].verdict is Verdict.REFUTED
    (together, _), *apart = judge.pairs
    assert sorted(text for text, _ in apart) == sorted(together.splitlines())
    assert {text for text, _ in apart} == {f"Ada Lind: {COPY}", f"Oslo: {WOOL.text}"}


def test_both_judges_are_loaded_before_the_first_question():
    first, second = Reader(), Reader()
    CascadeReader(first, second, second).warm()
    assert (first.loads, second.loads) == (1, 1)


def test_the_reader_is_refused_where_the_built_in_judge_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("ewe.verification.judges.load.builtin_path", lambda: tmp_path)
    with pytest.raises(JudgeError, match="built-in judge is missing"):
        check_judge("reader")
