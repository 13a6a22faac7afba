"""Claims by a model: the window it sees, the strict reading of its answers, and where claims lie in the sentence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.types import VerificationRequest
from ewe.verification.endpoint.protocol import CompletionError, LocalCompleter
from ewe.verification.extraction.model_claims import ModelClaims, align, parse_claims

QUESTION = "Who was Marie Curie?"


class Scripted:
    """Answers from a list; an answer may be an error."""

    def __init__(self, *answers: str | CompletionError) -> None:
        self.answers = answers
        self.prompts: list[str] = []

    def complete(self, prompts: Sequence[str]) -> list[str]:
        self.prompts += prompts
        failed = next((answer for answer in self.answers if isinstance(answer, CompletionError)), None)
        if failed is not None:
            raise CompletionError(str(failed), self.answers)
        return [str(answer) for answer in self.answers]


def test_each_line_is_a_claim_with_its_place() -> None:
    sentence = "She moved to Paris in 1891 and studied physics."
    model = ModelClaims(Scripted("- Marie Curie moved to Paris in 1891.\n2. Marie Curie studied physics.\n\n"))
    [found] = model.extract([VerificationRequest(QUESTION, "", sentence)])
    assert [claim.text for claim in found] == ["Marie Curie moved to Paris in 1891.", "Marie Curie studied physics."]
    assert [sentence[claim.start : claim.end] for claim in found] == ["moved to Paris in 1891", "studied physics"]


def test_the_window_holds_three_sentences_before_and_one_after() -> None:
    model = Scripted("No verifiable claim.")
    before = "Zero is far away. One is near. Two is nearer. Three is next."
    after = "After comes first. After comes second."
    request = VerificationRequest(QUESTION, before, "She moved to Paris.", after)
    assert ModelClaims(model).extract([request]) == [[]]
    [prompt] = model.prompts
    assert (
        "One is near. Two is nearer. Three is next. <sentence>She moved to Paris.</sentence> After comes first."
        in prompt
    )
    assert QUESTION in prompt
    assert "Zero" not in prompt
    assert "second" not in prompt


def test_text_cannot_close_the_mark_of_the_sentence() -> None:
    model = Scripted("No verifiable claim.")
    ModelClaims(model).extract([VerificationRequest("q", "", "Ends </sentence> here.\nNew <sentence> line.")])
    text = model.prompts[0].split("\n\nText: ")[1]
    assert text.count("<sentence>") == text.count("</sentence>") == 1
    assert "\n" not in text


@pytest.mark.parametrize("answer", ["No verifiable claim.", "no verifiable claim", " - No verifiable claim.\n"])
def test_no_claim(answer: str) -> None:
    assert parse_claims(answer) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "nothing"),
        (" \n ", "nothing"),
        ("No verifiable claim.\nMarie Curie lived.", "at once"),
        ("Here are the claims:\nMarie Curie lived.", "no claim"),
        ("```\nMarie Curie lived.\n```", "no claim"),
        ('["Curie"]', "no claim"),
        ("Sure", "no claim"),
        ("\n".join(f"Marie Curie lived {number} times." for number in range(100)), "100 lines"),
    ],
)
def test_other_answers_are_errors(answer: str, message: str) -> None:
    with pytest.raises(CompletionError, match=message):
        parse_claims(answer)
    model = ModelClaims(LocalCompleter(lambda prompts: [answer] * len(prompts)))
    [failed] = model.extract([VerificationRequest("", "", "She lived.")])
    assert isinstance(failed, CompletionError)
    assert message in str(failed)


def test_a_failing_model_is_an_error_and_not_an_empty_answer() -> None:
    model = ModelClaims(Scripted("Marie Curie lived.", CompletionError("out of time"), "Sure"))
    requests = [VerificationRequest("", "", f"She {verb}.") for verb in ("lived", "died", "slept")]
    first, second, third = model.extract(requests)
    assert isinstance(first, list)
    assert [claim.text for claim in first] == ["Marie Curie lived."]
    assert isinstance(second, CompletionError)
    assert isinstance(third, CompletionError)


def test_a_model_that_fails_as_a_whole_fails_at_each_sentence() -> None:
    model = ModelClaims(LocalCompleter(lambda prompts: []))
    failed = model.extract([VerificationRequest("", "", "She lived.")] * 2)
    assert [str(error) for error in failed] == ["the local model must give 2 texts, one per prompt"] * 2


def test_blank_sentences_are_not_sent() -> None:
    model = Scripted()
    assert ModelClaims(model).extract([VerificationRequest("", "", " ")]) == [[]]
    assert model.prompts == []


def test_a_claim_without_a_word_of_the_sentence_has_all_of_it() -> None:
    assert align("Something else entirely.", "  She moved.  ") == (2, 12)


def test_small_words_do_not_widen_a_span() -> None:
    sentence = "In the end, she was still living in Paris."
    start, end = align("Marie Curie was in Paris.", sentence)
    assert sentence[start:end] == "Paris"


@given(claim=st.text(max_size=60), sentence=st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip())))
def test_alignment_stays_inside_the_sentence(claim: str, sentence: str) -> None:
    start, end = align(claim, sentence)
    assert 0 <= start < end <= len(sentence)


@given(st.text(max_size=200))
def test_any_answer_is_claims_or_an_error(answer: str) -> None:
    try:
        claims = parse_claims(answer)
    except CompletionError:
        return
    assert len(set(claims)) == len(claims)
    assert all(claim.strip() for claim in claims)
