"""The model class for lm-evaluation-harness, where it is installed: likelihoods and answers are transformers' own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from e2e.llm_rig import loaded, model

pytest.importorskip("lm_eval", reason='the harness is not installed: pip install "ewe-engine[lm-eval]"')

from lm_eval.api.registry import get_model

import ewe.evaluation.lm_eval_model as module
from ewe.llm import LLM
from ewe.types.sampling_params import SamplingParams

PAIRS = [("The cat sat on", " the mat"), ("", "the dog"), ("A b", " c")]


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(module, "LLM", lambda config: LLM(config=config, loaded=loaded()))
    settings = {"cache.num_blocks": 300, "policy": "plain"}
    made = get_model("ewe").create_from_arg_obj({"model": "tiny", **settings}, {"batch_size": 4, "device": None})
    yield made
    made.llm.close()


def requests(*arguments: Any) -> list[Any]:
    return [SimpleNamespace(args=one) for one in arguments]


def reference(ids: list[int], count: int) -> tuple[float, bool]:
    """The log-probability of the last `count` tokens, and whether each is the likeliest."""
    scores = model("eager")(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    last = range(len(ids) - count, len(ids))
    total = sum(float(scores[at - 1, ids[at]]) for at in last)
    return total, all(int(scores[at - 1].argmax()) == ids[at] for at in last)


def test_likelihoods_are_those_of_transformers(harness: Any) -> None:
    for (context, continuation), (score, greedy) in zip(PAIRS, harness.loglikelihood(requests(*PAIRS)), strict=True):
        if context:
            before, after = harness._encode_pair(context, continuation)
        else:
            before, after = [harness.prefix_token_id], harness.tok_encode(continuation, add_special_tokens=False)
        total, likeliest = reference(before + after, len(after))
        assert score == pytest.approx(total, abs=1e-3)
        assert greedy == likeliest


def test_whole_texts_are_scored_in_windows(harness: Any) -> None:
    harness.max_length = 12
    text = "the cat sat on the mat and the dog sat on the cat and the mat"
    [total] = harness.loglikelihood_rolling(requests((text,)))
    expected = sum(reference(before + after, len(after))[0] for before, after in harness._windows(text))
    assert len(harness._windows(text)) > 1
    assert total == pytest.approx(expected, abs=1e-3)


def test_answers_end_before_a_stop_text_and_after_the_asked_tokens(harness: Any) -> None:
    options = {"until": [], "max_gen_toks": 6, "do_sample": False}
    [text] = harness.generate_until(requests(("The cat", options)))
    prompt = harness.tok_encode("The cat")
    ids = model("eager").generate(torch.tensor([prompt]), max_new_tokens=6, do_sample=False)[0, len(prompt) :]
    assert text == harness.tokenizer.decode(ids, skip_special_tokens=True)
    stop = text[2:4]
    [cut] = harness.generate_until(requests(("The cat", {**options, "until": [stop]})))
    assert cut == text[: text.index(stop)]


def test_a_prompt_that_is_too_long_loses_its_beginning(harness: Any) -> None:
    options = {"until": [], "max_gen_toks": 4, "do_sample": False}
    prompt = "word " * 900 + "The cat"
    [text] = harness.generate_until(requests((prompt, options)))
    kept = harness.tok_encode(prompt)[-(harness.max_length - 4) :]
    [answer] = harness.llm.generate([kept], SamplingParams(max_tokens=4))
    assert text == answer.text
