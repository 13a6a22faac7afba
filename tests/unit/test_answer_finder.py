"""Sentences that answer the question are looked for where a sentence that fails may give way to one."""

import numpy as np
import pytest

from ewe.config import VerificationConfig
from ewe.errors import JudgeError
from ewe.types import Passage, ScoredPassage, Verdict, VerificationRequest
from ewe.verification import answer_finder, claim_verifier
from ewe.verification.answer_finder import find_answers
from ewe.verification.judges.cached import trained_further
from ewe.verification.open_verifier import open_verifier

BUILT = "The harbour bridge of Lund was built by the engineer Ada Lind in 1931."
PAINTED = "The harbour bridge of Lund is painted green every seven years or so."
BRIDGE = Passage("bridge", f"{BUILT} {PAINTED}", title="Harbour bridge")
QUESTION = "Who built the harbour bridge of Lund?"


class Finds:
    def __init__(self, *passages):
        self.passages, self.queries = passages or (BRIDGE,), []

    def retrieve(self, queries, top_k):
        self.queries += queries
        return [[ScoredPassage(passage, 1.0) for passage in self.passages] for _ in queries]


def results(finds, *sentences, wants_answers=True, question=QUESTION):
    verifier = open_verifier("claims", finds, VerificationConfig(), device="cpu")
    return verifier.verify([VerificationRequest(question, "", text, wants_answers=wants_answers) for text in sentences])


@pytest.fixture
def asked(monkeypatch):
    calls = []

    def find(questions, passages):
        calls.append((questions, passages))
        return [()] * len(questions)

    monkeypatch.setattr(claim_verifier, "find_answers", find)
    return calls


def test_it_is_asked_once_for_a_question_and_not_for_what_is_supported(asked):
    finds = Finds()
    results(finds, BUILT, "It was Bo Berg who did it.", "The bridge was built by Bo Berg in 1950.")
    assert asked == [([QUESTION], [[BRIDGE]])]
    assert finds.queries.count(QUESTION) == 1


@pytest.mark.parametrize("request_", [{"wants_answers": False}, {"question": ""}])
def test_it_is_not_asked_where_nobody_wants_it(asked, request_):
    results(Finds(), "The bridge was built by Bo Berg in 1950.", **request_)
    assert asked == []


def test_passages_that_are_not_believed_at_all_answer_nothing(asked):
    results(Finds(Passage("no", BUILT, veracity=0.0)), "The bridge was built by Bo Berg in 1950.")
    assert asked == [([QUESTION], [[]])]


class Judge:
    def judge(self, pairs):
        self.pairs = pairs
        return np.array([(0.9, 0.0, 0.1) if "Ada" in text else (0.2, 0.0, 0.8) for text, _ in pairs], np.float32)


def test_only_sentences_that_can_stand_alone_and_are_likely_enough_are_given(monkeypatch):
    judge = Judge()
    monkeypatch.setattr(answer_finder._finder, "get", lambda: judge)
    twice = Passage("copy", f"{BUILT} And Ada Lind was its builder, as all agree.")
    [found] = find_answers([QUESTION], [[BRIDGE, twice]])
    assert [(one.excerpt, one.passage.id, one.stance) for one in found] == [(BUILT, "bridge", Verdict.INCONCLUSIVE)]
    assert [text for text, _ in judge.pairs] == [f"Harbour bridge: {BUILT}", f"Harbour bridge: {PAINTED}"]


def test_no_passages_no_model(monkeypatch):
    monkeypatch.setattr(answer_finder._finder, "get", lambda: pytest.fail("loaded for nothing"))
    assert find_answers([QUESTION], [[]]) == [()]


def test_weights_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(JudgeError, match=r"reader\.safetensors"):
        trained_further(tmp_path, "answers", answer_finder.MAX_TOKENS)
