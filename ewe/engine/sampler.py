"""Choosing the next token of every row from its logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ewe.attention.choose import missing_for_kernels
from ewe.engine.sampling_rows import Drawing, SamplingRow, Token
from ewe.sampling import SamplingParams


def sample(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """One token per row; where the kernels run, nothing waits for the device before they are read.

    logits: float32 [rows, vocab], finite or -inf; rows: in the same order; with_entropy: whether to compute entropies.
    A row that holds anything else gets some token, whose logprob is NaN.
    """
    if logits.is_cuda and _kernels_run_on(logits.device):
        from ewe.engine.fused_sampler import sample_fused

        return sample_fused(logits, rows, with_entropy)
    return sample_in_torch(logits, rows, with_entropy)


def sample_in_torch(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """As `sample`, row by row, by sorting: what the kernels must equal."""
    logprobs = torch.log_softmax(logits, dim=-1)
    entropies = torch.special.entr(logprobs.exp()).sum(dim=-1).tolist() if with_entropy else [0.0] * len(rows)
    ids = logits.argmax(dim=-1).tolist()
    for position, row in enumerate(rows):
        if not row.is_plain_greedy:
            ids[position] = _draw(logits[position], row)
    index = torch.tensor(ids, device=logits.device).unsqueeze(1)
    chosen = logprobs.gather(1, index).squeeze(1).tolist()
    tokens = [
        Token(ids[i], chosen[i], entropies[i], _top(logprobs[i], row.params.logprobs)) for i, row in enumerate(rows)
    ]
    return Drawing(index.squeeze(1), lambda: tokens)


@cache
def _kernels_run_on(device: torch.device) -> bool:
    return missing_for_kernels(device) is None


def _top(logprobs: Tensor, count: int | None) -> dict[int, float] | None:
    if not count:
        return None
    values, ids = logprobs.topk(min(count, logprobs.shape[-1]))
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


def _draw(logits: Tensor, row: SamplingRow) -> int:
    adjusted = _adjust(logits.clone(), row)
    if row.temperature == 0:
        return int(adjusted.argmax())
    probabilities, ids = _truncated(adjusted / row.temperature, row.params)
    cumulative = probabilities.double().cumsum(dim=-1)
    point = uniform(row) * float(cumulative[-1])
    return int(ids[min(int(torch.searchsorted(cumulative, point, right=True)), len(ids) - 1)])


def _adjust(logits: Tensor, row: SamplingRow) -> Tensor:
    """Penalties and biases, in place; repetition counts the prompt too, the other two only the output (as in vLLM)."""
    params = row.params
    output = torch.tensor(row.output_ids, dtype=torch.long, device=logits.device)
    if params.repetition_penalty != 1:
        prompt = torch.tensor(row.prompt_ids, dtype=torch.long, device=logits.device)
        seen = torch.unique(torch.cat([output, prompt]))
        values = logits[seen]
        scale = params.repetition_penalty
        logits[seen] = torch.where(values > 0, values / scale, values * scale)
    if len(output) and (params.presence_penalty or params.frequency_penalty):
        ids, counts = torch.unique(output, return_counts=True)
        logits[ids] -= params.presence_penalty + params.frequency_penalty * counts
    for token_id, bias in params.logit_bias.items():
        logits[token_id] += bias
    if row.banned:
        logits[list(row.banned)] = -math.inf
    if row.allowed is not None:
        logits.masked_fill_(torch.from_numpy(~row.allowed).to(logits.device), -math.inf)
    return logits


def _truncated(logits: Tensor, params: SamplingParams) -> tuple[Tensor, Tensor]:
    """Probabilities and ids, likeliest first, after top_k, then top_p, then min_p."""
    values, ids = logits.sort(descending=True, stable=True)
    if params.top_k > 0:
        values, ids = values[: params.top_k], ids[: params.top_k]
    probabilities = torch.softmax(values, dim=-1)
    keep = int(probabilities.count_nonzero())  # no rounding may lead to an impossible token
    if params.top_p < 1:
        before = probabilities.cumsum(dim=-1) - probabilities
        keep = min(keep, int((before < params.top_p).sum()))
    if params.min_p > 0:
        keep = min(keep, int((probabilities >= params.min_p * probabilities[0]).sum()))
    keep = max(keep, 1)
    return probabilities[:keep], ids[:keep]


def uniform(row: SamplingRow) -> float:
    """A number in [0, 1) that depends on seed, answer, position and rewind count alone."""
    key, counter = (np.array(part, dtype=np.uint64) for part in row.random_stream)
    return float(np.random.Generator(np.random.Philox(key=key, counter=counter)).random())
