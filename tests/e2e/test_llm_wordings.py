"""Rewrites with several wordings and quotations, with the whole engine and the built-in model."""

from __future__ import annotations

from typing import Any

import pytest

from ewe import LLM, SamplingParams
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationResult

PROMPTS = ["Who was Nurim Nurner?", "Tell me about Nurim Nurner."]
FOUND = "Nurim Nurner was a painter of the far north who lived by the sea."
FACTS = Passage("facts", FOUND, "Nurim Nurner")


class Contrary:
    """A verifier that believes nothing but what it is quoted."""

    def verify(self, requests: Any) -> Any:
        claim = Claim("It is so.", verdict=Verdict.REFUTED, score=1.0, evidence_ids=("facts",))
        return [VerificationResult((claim,), (Evidence(FACTS, Verdict.REFUTED, 1.0, FOUND),)) for _ in requests]


@pytest.mark.parametrize("wordings", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_answers_of_a_batch_are_those_of_each_alone_and_every_block_comes_back(wordings: int) -> None:
    feedback = {"wordings": wordings, "max_attempts": 2, "on_exhausted": "quote"}
    params = [SamplingParams(max_tokens=60, temperature=0.7, seed=seed) for seed in range(2)]
    with LLM(config={"model": {"name": "builtin"}, "feedback": feedback}, verifier=Contrary()) as llm:
        together = llm.generate(PROMPTS, params)
        alone = [llm.generate(prompt, one)[0] for prompt, one in zip(PROMPTS, params, strict=True)]
        llm.check_integrity()
    assert [one.text for one in together] == [one.text for one in alone]
    assert FOUND in together[0].text
    for generation in together:
        assert all(sentence.text == FOUND for sentence in generation.sentences if sentence.quotes)
        drawn = [event.data for event in generation.trace if event.kind == "wordings"]
        assert all(len(event["wordings"]) == 4 for event in drawn)
        assert bool(drawn) == (wordings > 1)
