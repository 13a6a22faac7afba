"""Choosing the next token of every row in a few kernels, for GPUs; `sampler` is what it must equal.

They run after a pass, or at its end if all that they need is known before it (`ForwardResult.drawn`).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from ewe_kernels.penalties import penalise
from ewe_kernels.sampling import ids_and_logprobs, sample_tokens
from torch import Tensor

from ewe.engine.attention.packed import to_device, to_host
from ewe.engine.models.device import launching_on
from ewe.engine.sampling.draw_columns import DRAWN_BY, DrawColumns
from ewe.engine.sampling.sampler import Drawing, SamplingRow, Token

_CHANGED_BY = ("rows", "tokens", "counts", "biases", "repetition", "presence", "frequency")


def sample_fused(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """As `sampler.sample`, in whose words the arguments are described."""
    pairs = [(number, *pair) for number, row in enumerate(rows) for pair in _pairs(row)]
    tensors = to_device({**DrawColumns().of(rows), **_penalties(rows), **_columns(pairs)}, logits.device)
    # Log-probabilities are those of the untouched logits.
    adjusted = logits.clone() if pairs or any(row.allowed is not None for row in rows) else logits
    if pairs:
        with launching_on(logits.device):
            penalise(adjusted, *(tensors[name] for name in _CHANGED_BY))
    for number, row in enumerate(rows):
        if row.allowed is not None:
            forbidden = torch.from_numpy(~row.allowed)
            if logits.is_cuda:
                forbidden = forbidden.pin_memory().to(logits.device, non_blocking=True)
            adjusted[number].masked_fill_(forbidden, -math.inf)
    with launching_on(logits.device):
        drawn = torch.empty(len(rows), 2, dtype=torch.int64, device=logits.device)
        sample_tokens(logits, adjusted, drawn, *(tensors[name] for name in DRAWN_BY))
    counts = [row.params.logprobs or 0 for row in rows]
    outputs = {"drawn": drawn, **_top(logits, max(counts))}
    if with_entropy:
        outputs["entropies"] = torch.special.entr(torch.softmax(logits, -1)).sum(-1)
    return Drawing(drawn[:, 0], partial(_tokens, to_host(outputs), counts))


def fetch(drawn: Tensor) -> Drawing:
    """Tokens that `sample_tokens` has drawn, on their way to the host."""
    arrived = to_host({"drawn": drawn})

    def read() -> list[Token]:
        ids, logprobs = ids_and_logprobs(arrived()["drawn"])
        return [Token(id_, logprob, 0.0) for id_, logprob in zip(ids.tolist(), logprobs.tolist(), strict=True)]

    return Drawing(drawn[:, 0], read)


def _penalties(rows: Sequence[SamplingRow]) -> dict[str, np.ndarray]:
    return {
        "repetition": np.array([row.params.repetition_penalty for row in rows], np.float32),
        "presence": np.array([row.params.presence_penalty for row in rows], np.float32),
        "frequency": np.array([row.params.frequency_penalty for row in rows], np.float32),
    }


def _pairs(row: SamplingRow) -> list[tuple[int, int, float]]:
    """The row's tokens whose logits change: (token, count in the output or -1 if it is nowhere, bias)."""
    params = row.params
    counts: dict[int, int] = {}
    if params.repetition_penalty != 1:
        counts = dict.fromkeys(row.prompt_ids, 0)
    if params.repetition_penalty != 1 or params.presence_penalty or params.frequency_penalty:
        counts |= Counter(row.output_ids)
    biases = {**params.logit_bias, **dict.fromkeys(row.banned, -math.inf)}
    return [(token, counts.get(token, -1), biases.get(token, 0.0)) for token in {**counts, **biases}]


def _columns(pairs: Sequence[tuple[int, int, int, float]]) -> dict[str, np.ndarray]:
    rows, tokens, counts, biases = zip(*pairs, strict=True) if pairs else ((), (), (), ())
    return {
        "rows": np.array(rows, np.int32),
        "tokens": np.array(tokens, np.int32),
        "counts": np.array(counts, np.int32),
        "biases": np.array(biases, np.float32),
    }


def _top(logits: Tensor, count: int) -> dict[str, Tensor]:
    """Log-probabilities ("values") and ids [rows, count] of the likeliest tokens, if any are asked for."""
    if not count:
        return {}
    values, ids = torch.log_softmax(logits, -1).topk(min(count, logits.shape[1]))
    return {"values": values, "ids": ids}


def _tokens(arrived: Callable[[], Mapping[str, Tensor]], counts: Sequence[int]) -> list[Token]:
    """The tokens of all rows; counts: how many of the likeliest ones each row asks for."""
    tensors = arrived()
    drawn = zip(*(part.tolist() for part in ids_and_logprobs(tensors["drawn"])), strict=True)
    others = {name: tensor.tolist() for name, tensor in tensors.items() if name != "drawn"}
    return [
        Token(
            token,
            logprob,
            others["entropies"][row] if "entropies" in others else 0.0,
            dict(zip(others["ids"][row][:count], others["values"][row][:count], strict=True)) if count else None,
        )
        for row, ((token, logprob), count) in enumerate(zip(drawn, counts, strict=True))
    ]
