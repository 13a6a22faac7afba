"""Log-probabilities of prompts: transformers' own, however the prompt is cut and whatever runs beside it."""

from __future__ import annotations

import pytest
import torch
from e2e.llm_rig import model, tiny_llm
from tolerances import LOGPROBS

from ewe import LLM, SamplingParams

PROMPTS = ["The river", "She wrote a novel by the sea. " * 6, "It flows past the sea, then"]


def reference(ids: list[int]) -> torch.Tensor:
    """float64 [tokens - 1, vocab], the log-probabilities of what follows each token but the last."""
    return model("eager")(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1)


@pytest.mark.parametrize("most_tokens", [24, 2048])
def test_prompts_have_the_probabilities_of_transformers(most_tokens: int) -> None:
    scheduler = {"max_num_batched_tokens": most_tokens, "max_num_seqs": 4}
    with tiny_llm({"memory": {"retrieval_units": 0, "verification_units": 0}, "scheduler": scheduler}) as llm:
        asked = SamplingParams(max_tokens=6, prompt_logprobs=2, n=2, ignore_eos=True)
        plain = SamplingParams(max_tokens=6, n=2, ignore_eos=True)
        found = llm.generate(PROMPTS, [asked, asked, plain])
        ids = [llm.tokenizer(prompt)["input_ids"] for prompt in PROMPTS]
        assert len(ids[1]) > most_tokens or most_tokens > 24, "one prompt takes several passes"
        for number, generation in enumerate(found[:4]):
            own = ids[number // 2]
            expected = reference(own)
            chosen = expected.gather(1, torch.tensor(own[1:])[:, None])[:, 0]
            assert list(generation.prompt_logprobs) == pytest.approx(chosen.tolist(), abs=LOGPROBS)
            best = expected.topk(2)
            for row, top in enumerate(generation.prompt_top_logprobs):
                assert sorted(top.values(), reverse=True) == pytest.approx(best.values[row].tolist(), abs=LOGPROBS)
        assert found[4].prompt_logprobs == found[4].prompt_top_logprobs == ()
        texts = [item.text for item in llm.generate(PROMPTS, plain)]
        assert [item.text for item in found] == texts, "who is asked for them answers the same"
        llm.check_integrity()


def test_scores_without_alternatives_and_prompts_of_one_token() -> None:
    with tiny_llm() as llm:
        first, second = llm.generate([[5, 6, 7], [5]], SamplingParams(max_tokens=2, prompt_logprobs=0))
        assert (len(first.prompt_logprobs), first.prompt_top_logprobs) == (2, ())
        assert second.prompt_logprobs == ()


def test_a_prompt_that_saw_documents_is_scored_under_them() -> None:
    def scores(llm: LLM, *documents: str) -> tuple[float, ...]:
        asked = SamplingParams(max_tokens=1, prompt_logprobs=0)
        return llm.generate(PROMPTS[0], asked, documents=documents)[0].prompt_logprobs

    with tiny_llm() as llm:
        assert scores(llm, "The river was named in 1897.") != pytest.approx(scores(llm), abs=1e-3)
