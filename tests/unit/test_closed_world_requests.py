"""`closed_world` of single requests: each sentence of a batch is judged as its request has it, and says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from asking_bench import AskingBench, scripted
from engine_parts import Answers, words
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.request import check_closed_world
from ewe.engine.side_texts import Ask, Asking, VerifyTexts
from ewe.engine.text_checker import check_text
from ewe.errors import InvalidRequestError
from ewe.retrieval.bm25 import BM25Retriever
from ewe.text.check_result import CheckedSentence
from ewe.types import Passage, ScoredPassage, Sentence, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import Verifier
from ewe.types.sampling_params import SamplingParams
from ewe.verification.combination import UNSUPPORTED
from ewe.verification.open_verifier import open_verifier

ADA = Passage("ada", "Ada Lovelace was born in London in 1815.", title="Ada Lovelace")
ABSENT, FALSE, TRUE = (
    "Grace Hopper was born in New York in 1906.",
    "Ada Lovelace was born in London in 1851.",
    "Ada Lovelace was born in London in 1815.",
)
OPEN, NO, YES = Verdict.INCONCLUSIVE, Verdict.REFUTED, Verdict.SUPPORTED


class Shelf:
    """Finds the one passage for everything, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        self.calls += 1
        return [[ScoredPassage(ADA, 1.0)] for _ in queries]


def opened(is_complete: bool, shelf: Shelf | None = None) -> Verifier:
    return open_verifier("claims", shelf or Shelf(), assume_complete=is_complete)


def ask(verifier: Verifier, *asked: tuple[str, bool | None]) -> list[VerificationResult]:
    return verifier.verify([VerificationRequest("", "", text, closed_world=closed) for text, closed in asked])


@pytest.mark.parametrize(("is_complete", "unsaid"), [(False, OPEN), (True, NO)])
def test_one_batch_may_mix_them_and_none_is_as_the_verifier_was_made(is_complete: bool, unsaid: Verdict) -> None:
    shelf = Shelf()
    asked = [(ABSENT, None), (ABSENT, True), (ABSENT, False), (TRUE, True), (FALSE, True), (FALSE, False)]
    results = ask(opened(is_complete, shelf), *asked)
    assert [result.verdict for result in results] == [unsaid, NO, OPEN, YES, NO, NO]
    assert shelf.calls == 1


def test_a_claim_says_that_it_is_unsupported_and_not_contradicted() -> None:
    absent, false, true, left = ask(opened(False), (ABSENT, True), (FALSE, True), (TRUE, True), (ABSENT, False))
    assert [claim.reason for claim in absent.claims] == [UNSUPPORTED]
    assert not any(claim.reason for result in (false, true, left) for claim in result.claims)
    assert all(piece.score == 0 for piece in absent.evidence)


def test_what_was_found_instead_decides_nothing() -> None:
    [absent, false] = ask(opened(True), (ABSENT, None), (FALSE, None))
    shown = [
        CheckedSentence(Sentence("", 0, 0, result.verdict, claims=result.claims), result.evidence)
        for result in (absent, false)
    ]
    assert shown[0].evidence
    assert [item.deciding is None for item in shown] == [True, False]


@pytest.mark.parametrize("closed", [None, True, False])
def test_a_finished_text_is_checked_as_its_caller_has_it(closed: bool | None) -> None:
    verifier = Answers({})
    check_text("One. Two. Three.", verifier, batch_size=2, closed_world=closed)
    assert [request.closed_world for request in verifier.seen] == [closed] * 3


@pytest.mark.parametrize("value", ["yes", 1, 0, [], "false"])
def test_what_is_no_bool_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"^closed_world: this must be True, False or None"):
        check_closed_world(value)
    with pytest.raises(InvalidRequestError, match="closed_world"):
        check_text("One.", Answers({}), closed_world=value)


def test_it_is_refused_where_nothing_is_checked() -> None:
    with pytest.raises(InvalidRequestError, match=r"closed_world: .* not checked here: there is no datastore"):
        check_closed_world(True, "there is no datastore")
    for harmless in (None, False):
        check_closed_world(harmless, "there is no datastore")


def test_sentences_under_way_carry_what_their_request_asked_for() -> None:
    verifier = Answers({})
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    settings = Config.from_mapping({"memory": memory, "feedback": {"verify_every": 1}, "cache": {"block_size": 4}})
    bench = Bench(settings, None, verifier, words("Aa. Bb."))
    for number, closed in enumerate((None, True, False)):
        bench.add(f"r{number}", f"{number}:", SamplingParams(max_tokens=30), closed_world=closed)
    bench.run()
    asked = {(request.prompt, request.closed_world) for request in verifier.seen}
    assert asked == {("0:", None), ("1:", True), ("2:", False)}


@pytest.mark.parametrize("closed", [None, True, False])
def test_checks_of_given_texts_carry_it_too(closed: bool | None, words_only: Callable[..., Any]) -> None:
    def steps(question: str) -> Asking:
        yield VerifyTexts((VerificationRequest(question, "", "B."), VerificationRequest(question, "B.", "C.")))
        return Ask("Go on:")

    verifier = Answers({})
    bench = AskingBench(
        Config.from_mapping({"policy": "rewrite-after", "verifier": "builtin", "datastore": "builtin"}),
        scripted(steps), None, verifier, words_only,
    )  # fmt: skip
    bench.ask("a", closed_world=closed)
    bench.finish()
    assert [request.closed_world for request in verifier.seen] == [closed] * 2


@pytest.fixture
def words_only() -> Any:
    return words("Aa.")


def test_a_retriever_without_anything_leaves_nothing_to_show() -> None:
    verifier = open_verifier("claims", BM25Retriever([ADA]))
    [result] = ask(verifier, (ABSENT, True))
    assert (result.verdict, [claim.reason for claim in result.claims]) == (NO, [UNSUPPORTED])
