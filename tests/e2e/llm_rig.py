"""A tiny random model with a small trained tokenizer behind LLM, and transformers' own answer to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

import torch
from parity.families import CONFIGS
from transformers import AutoModelForCausalLM
from unit.engine_tokenizers import sentencepiece_like

import ewe.engine.attention.ewe_attention  # noqa: F401  (registers the attention)
from ewe import LLM
from ewe.engine.models.loader import LoadedModel

MAX_LEN = 400


@lru_cache
def model(attention: str, vocab_size: int | None = None) -> Any:
    """The same weights under either attention: "ewe", or transformers' "eager". None: `sentencepiece_like`'s tokens."""
    config = deepcopy(CONFIGS["llama"])
    config.vocab_size = vocab_size or len(sentencepiece_like())
    with torch.random.fork_rng():
        torch.manual_seed(3)
        built = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation=attention)
    return built.eval().requires_grad_(False)


def loaded() -> LoadedModel:
    """What load_model would give for it."""
    tokenizer = sentencepiece_like()
    return LoadedModel(model("ewe"), tokenizer, MAX_LEN, frozenset({tokenizer.eos_token_id}), len(tokenizer))


def tiny_llm(config: dict[str, Any] | None = None, **components: Any) -> LLM:
    """An LLM over the tiny model; the settings are those given, with small units."""
    values = {"memory": {"unit_tokens": 24, "retrieval_units": 3}, "cache": {"num_blocks": 300}}
    # A datastore alone would have a judge loaded, which most tests have no use for.
    values |= {"verifier": "none", **(config or {})}
    return LLM("tiny", config=values, loaded=loaded(), **components)


def greedy_reference(
    prompt_ids: Sequence[int], units: Sequence[Sequence[int]], weights: Sequence[float], start: int, count: int
) -> tuple[list[int], list[float]]:
    """Tokens and log-probabilities of transformers' eager attention, with units and bias as one explicit mask.

    Every step runs [units; context] anew, so nothing of the engine's paging or caching is in it.
    """
    ids, logprobs = list(prompt_ids), []
    lengths = [len(unit) for unit in units]
    for _ in range(count):
        tokens = [token for unit in units for token in unit] + ids
        positions = [place for length in lengths for place in range(length)] + list(range(start, start + len(ids)))
        output = model("eager")(
            input_ids=torch.tensor([tokens]),
            position_ids=torch.tensor([positions]),
            attention_mask=_mask(lengths, len(ids), weights),
            use_cache=False,
        )
        scores = output.logits[0, -1].double().log_softmax(-1)
        ids.append(int(scores.argmax()))
        logprobs.append(float(scores.max()))
    return ids[len(prompt_ids) :], logprobs


def _mask(lengths: Sequence[int], context: int, weights: Sequence[float]) -> torch.Tensor:
    """[1, 1, T, T]: units see themselves, the context sees units + log w and itself + log(1 + sum w)."""
    total = sum(lengths) + context
    mask = torch.full((total, total), -torch.inf)
    begin = 0
    for length, weight in zip(lengths, weights, strict=True):
        mask[begin : begin + length, begin : begin + length].fill_(0).masked_fill_(_future(length), -torch.inf)
        mask[sum(lengths) :, begin : begin + length] = math.log(weight)
        begin += length
    own = mask[begin:, begin:]
    own.fill_(math.log1p(sum(weights))).masked_fill_(_future(context), -torch.inf)
    return mask[None, None]


def _future(length: int) -> torch.Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)
