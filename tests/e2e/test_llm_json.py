"""Answers that must be JSON, with the whole engine around them: batches, several answers, checks and rewinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("llguidance", reason="llguidance is not installed")

from ewe import LLM, SamplingParams
from ewe.types import Claim, Verdict, VerificationResult

PROMPT = "Who was Nurim Nurner?"
MOST_LETTERS = 100
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": MOST_LETTERS}, "sure": {"type": "boolean"}},
    "required": ["text", "sure"],
    "additionalProperties": False,
}
PARAMS = SamplingParams(max_tokens=300, json_schema=SCHEMA, temperature=0.9, seed=2, n=2, logprobs=1, ignore_eos=True)


class Contrary:
    """A verifier that believes nothing."""

    def verify(self, requests: Any) -> Any:
        claim = Claim("It is so.", verdict=Verdict.REFUTED, score=1.0)
        return [VerificationResult((claim,)) for _ in requests]


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM(model="builtin") as opened:
        yield opened
        opened.check_integrity()


def test_every_answer_is_json_whatever_was_taken_back(llm: LLM) -> None:
    answers = llm.generate([PROMPT, "The bridge"], PARAMS)
    for answer in answers:
        assert answer.finish_reason == "stop"
        found = json.loads(answer.text)
        assert list(found) == ["text", "sure"]
        assert len(found["text"]) <= MOST_LETTERS
        assert len(answer.logprobs) == len(answer.token_ids)
    assert sum(answer.stats.rewrites for answer in answers), "sentences inside the JSON text are checked"
    assert any(claim for answer in answers for sentence in answer.sentences for claim in sentence.claims)
    alone = llm.generate([PROMPT], PARAMS)
    assert [answer.text for answer in alone] == [answer.text for answer in answers[:2]], "the batch changes nothing"


@pytest.mark.parametrize("on_exhausted", ["drop", "keep_best", "flag"])
def test_what_happens_to_refuted_sentences_leaves_json(on_exhausted: str) -> None:
    feedback = {"max_attempts": 2, "on_exhausted": on_exhausted, "mode": "optimistic"}
    with LLM(config={"model": {"name": "builtin"}, "feedback": feedback}, verifier=Contrary()) as llm:
        for answer in llm.generate([PROMPT], replace(PARAMS, temperature=1.3)):
            assert json.loads(answer.text).keys() == {"text", "sure"}, answer.finish_reason
            assert answer.stats.rewrites
        llm.check_integrity()


def test_plain_json_and_the_limits_of_an_answer(llm: LLM) -> None:
    cut, whole = llm.generate(
        [PROMPT, PROMPT],
        [
            SamplingParams(max_tokens=5, json_schema={"type": "object"}),
            SamplingParams(max_tokens=60, min_tokens=50, json_schema={"enum": [{"a": [1, None]}]}),
        ],
    )
    assert (cut.text[:1], cut.finish_reason) == ("{", "length")
    assert (whole.text, whole.finish_reason) == ('{"a": [1, null]}', "stop"), "min_tokens adds nothing to a whole text"
