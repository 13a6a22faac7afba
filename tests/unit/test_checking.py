"""Checking a text: every sentence comes back once, whatever the verifier does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.engine.text_checker import LONGEST_SENTENCE, check_text
from ewe.errors import EWEError, InvalidRequestError
from ewe.text.check_result import CheckedSentence, CheckedText
from ewe.types import Claim, Evidence, Passage, Sentence, Verdict, VerificationRequest, VerificationResult

S, R, OPEN, N = Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED
ONE, OTHER = Passage("one", "One says so."), Passage("other", "Another says no.")


class Verifier:
    """Remembers what it is asked; refutes sentences with "wrong", fails on those with "boom"."""

    def __init__(self, answer: Callable[[str], VerificationResult] | None = None) -> None:
        self.calls: list[list[VerificationRequest]] = []
        self.answer = answer or self.by_words

    @staticmethod
    def by_words(sentence: str) -> VerificationResult:
        if "boom" in sentence:
            raise EWEError("the endpoint is down")
        if "opinion" in sentence:
            return VerificationResult()
        verdict = R if "wrong" in sentence else S
        return VerificationResult(
            (Claim(sentence, 0, len(sentence), verdict, 0.9, ("one",)),), (Evidence(ONE, verdict, 0.9),)
        )

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        self.calls.append(list(requests))
        return [self.answer(request.sentence) for request in requests]


def verdicts(checked: CheckedText) -> list[Verdict]:
    return [item.sentence.verdict for item in checked.sentences]


def test_sentences_keep_their_place_verdict_and_evidence() -> None:
    text = "  This is right. That is wrong!\n\nAn opinion, no more."
    checked = check_text(text, Verifier(), prompt="Well?")
    assert verdicts(checked) == [S, R, N]
    assert [text[item.sentence.start : item.sentence.end] for item in checked.sentences] == [
        "This is right.", "That is wrong!", "An opinion, no more.",
    ]  # fmt: skip
    first, _, last = checked.sentences
    assert first.evidence == (Evidence(ONE, S, 0.9),)
    assert (first.sentence.source_ids, first.sentence.score, first.sentence.reason) == (("one",), 1.0, "")
    assert last.sentence.reason == "no checkable claim"
    assert (checked.verdict, checked.num_failed, checked.error) == (R, 0, "")
    assert checked.sources == {"one": ONE}
    assert checked.count_sentences() == {S: 1, R: 1, OPEN: 0, N: 1}
    assert checked.count_claims() == {S: 1, R: 1, OPEN: 0, N: 0}


def test_code_is_no_claim_and_what_follows_it_keeps_its_place() -> None:
    code = "```python\n# This is wrong.\n" + "x = 1  # wrong!\n" * 500 + "```"
    text = f"One is right:\n{code}\nThat is wrong."
    verifier = Verifier()
    first, *inside, last = check_text(text, verifier).sentences
    assert [request.sentence for call in verifier.calls for request in call] == ["One is right:", "That is wrong."]
    assert {(item.sentence.verdict, item.sentence.reason) for item in inside} == {(N, "no checkable claim: code")}
    assert (first.sentence.verdict, last.sentence.verdict) == (S, R)
    assert text[last.sentence.start : last.sentence.end] == "That is wrong."


def test_the_verifier_sees_the_prompt_and_the_text_before_each_sentence() -> None:
    verifier = Verifier()
    check_text("One is here. Two is there. Three is far.", verifier, prompt="Who?", batch_size=2)
    assert [len(call) for call in verifier.calls] == [2, 1]
    asked = [request for call in verifier.calls for request in call]
    assert [request.preceding for request in asked] == ["", "One is here. ", "One is here. Two is there. "]
    assert {request.prompt for request in asked} == {"Who?"}


def test_what_stands_before_is_cut_at_a_sentence_so_that_long_texts_stay_linear() -> None:
    verifier = Verifier()
    check_text("".join(f"Sentence {number} is here. " for number in range(2000)), verifier)
    longest = max((request.preceding for call in verifier.calls for request in call), key=len)
    assert 5900 < len(longest) <= 6000
    assert longest.startswith("Sentence ")


def test_progress_ends_with_all_sentences() -> None:
    seen: list[tuple[int, int]] = []
    check_text(
        "One is here. Two is there. Three is far.",
        Verifier(),
        batch_size=2,
        on_progress=lambda *step: seen.append(step),
    )
    assert seen == [(2, 3), (3, 3)]


def test_a_failed_call_costs_its_own_sentences_only() -> None:
    checked = check_text("It is right. It went boom. It is wrong.", Verifier(), batch_size=1)
    assert verdicts(checked) == [S, N, R]
    assert checked.sentences[1].sentence.reason == checked.error == "the endpoint is down"
    assert (checked.verdict, checked.num_failed) == (R, 1)


def test_a_verifier_that_keeps_failing_is_not_asked_for_ever() -> None:
    verifier = Verifier()
    checked = check_text("It went boom. " * 9, verifier, batch_size=1)
    assert len(verifier.calls) == 2
    assert checked.num_failed == 9
    assert checked.sentences[8].sentence.reason == "not tried after earlier failures: the endpoint is down"


def test_failures_now_and_then_do_not_end_the_check() -> None:
    checked = check_text("It went boom. It is right. " * 4, Verifier(), batch_size=1)
    assert verdicts(checked) == [N, S] * 4


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda sentence: None, "TypeError: the verifier must return VerificationResult, got NoneType"),
        (lambda sentence: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_nonsense_from_a_verifier_becomes_the_reason(answer: Callable[[str], VerificationResult], reason: str) -> None:
    checked = check_text("It is right.", Verifier(answer))
    assert (verdicts(checked), checked.error) == ([N], reason)


def test_what_is_too_long_to_be_a_sentence_is_not_given_to_the_verifier() -> None:
    verifier = Verifier()
    checked = check_text("word " * LONGEST_SENTENCE + ". It is right.", verifier)
    assert verdicts(checked) == [N, S]
    assert "longer than" in checked.sentences[0].sentence.reason
    assert [len(call) for call in verifier.calls] == [1]
    assert checked.error == ""


@pytest.mark.parametrize(("text", "message"), [("", "empty"), (" \n\t", "empty"), ("a\ud800b", "surrogate")])
def test_what_is_no_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        check_text(text, Verifier())


def test_a_broken_prompt_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the prompt"):
        check_text("Fine.", Verifier(), prompt="\udfff")


@given(st.text(st.sampled_from("ab. \n!?é🙂W"), max_size=200), st.integers(1, 5))
def test_sentences_cover_every_text_in_order(text: str, batch_size: int) -> None:
    if not text.strip():
        return
    checked = check_text(text, Verifier(), batch_size=batch_size)
    position = 0
    for item in checked.sentences:
        sentence = item.sentence
        assert text[position : sentence.start].strip() == ""
        assert text[sentence.start : sentence.end] == sentence.text != ""
        position = sentence.end
    assert text[position:].strip() == ""


def sentence_of(*claims: Claim, evidence: tuple[Evidence, ...]) -> CheckedSentence:
    return CheckedSentence(Sentence("x", 0, 1, claims=claims), evidence)


def test_evidence_on_both_sides_of_one_claim_is_a_conflict() -> None:
    born, died = Claim("Born.", verdict=S, evidence_ids=("one",)), Claim("Died.", verdict=R, evidence_ids=("one",))
    both = (
        Evidence(ONE, S, 0.9, claim="Born."),
        Evidence(OTHER, R, 0.7, claim="Born."),
        Evidence(ONE, R, 0.8, claim="Died."),
    )
    item = sentence_of(born, died, evidence=both)
    assert item.evidence_of(born) == both[:2]
    assert item.evidence_of(died) == both[2:]
    assert item.conflicts == (born,)
    assert CheckedText("x", (item,)).num_conflicts == 1


def test_evidence_that_names_no_claim_backs_those_that_list_its_passage() -> None:
    born, died = Claim("Born.", verdict=S, evidence_ids=("one",)), Claim("Died.", verdict=R, evidence_ids=("one",))
    evidence = (Evidence(ONE, S, 0.9), Evidence(ONE, R, 0.8), Evidence(OTHER, R, 0.8))
    item = sentence_of(born, died, evidence=evidence)
    assert item.evidence_of(born) == evidence[:1]
    assert item.evidence_of(died) == evidence[1:2]
    assert item.conflicts == ()


@pytest.mark.parametrize(
    ("found", "expected"),
    [([], N), ([N], N), ([S, N], S), ([S, OPEN], OPEN), ([OPEN, N], OPEN), ([S, R, OPEN], R)],
)
def test_the_verdict_of_a_text(found: list[Verdict], expected: Verdict) -> None:
    sentences = tuple(CheckedSentence(Sentence("x", 0, 1, verdict=verdict)) for verdict in found)
    assert CheckedText("x", sentences).verdict is expected


def test_the_verifier_sees_what_stands_around_a_sentence() -> None:
    verifier = Verifier()
    check_text("One is here. Two is there.\n\nThree is gone.", verifier, prompt="Where?", batch_size=2)
    seen = [(r.preceding.strip(), r.sentence, r.following) for call in verifier.calls for r in call]
    assert seen == [
        ("", "One is here.", "Two is there."),
        ("One is here.", "Two is there.", "Three is gone."),
        ("One is here. Two is there.", "Three is gone.", ""),
    ]
