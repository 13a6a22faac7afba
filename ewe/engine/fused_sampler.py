"""Choosing the next token of every row in a few kernels, for GPUs; `sampler` is what it must equal.

They run after a pass, or at its end if all that they need is known before it (`ForwardResult.drawn`).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from ewe_kernels.penalties import penalise
from ewe_kernels.sampling import ids_and_logprobs, sample_tokens
from torch import Tensor

from ewe.engine.attention.packed import to_device, to_host
from ewe.engine.models.device import launching_on
from ewe.engine.philox import Uint64Array, Uniforms, first_uniforms
from ewe.engine.sampler import Drawing, SamplingRow, Token

_CHANGED_BY = ("rows", "tokens", "counts", "biases", "repetition", "presence", "frequency")
# What `sample_tokens` asks for per row, in its order.
DRAWN_BY = {
    "temperatures": np.float32,
    "top_ks": np.int32,
    "top_ps": np.float32,
    "min_ps": np.float32,
    "points": np.float32,
}


def sample_fused(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """As `sampler.sample`, in whose words the arguments are described."""
    pairs = [(number, *pair) for number, row in enumerate(rows) for pair in _pairs(row)]
    tensors = to_device({**draw_parameters(rows), **_penalties(rows), **_columns(pairs)}, logits.device)
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
    wanted = {"drawn": drawn, **_top(logits, max(counts))}
    if with_entropy:
        wanted["entropies"] = torch.special.entr(torch.softmax(logits, -1)).sum(-1)
    return Drawing(drawn[:, 0], partial(_tokens, to_host(wanted), counts))


def fetch(drawn: Tensor) -> Drawing:
    """Tokens that `sample_tokens` has drawn, on their way to the host."""
    arrived = to_host({"drawn": drawn})

    def read() -> list[Token]:
        ids, logprobs = ids_and_logprobs(arrived()["drawn"])
        return [Token(id_, logprob, 0.0) for id_, logprob in zip(ids.tolist(), logprobs.tolist(), strict=True)]

    return Drawing(drawn[:, 0], read)


def draw_parameters(rows: Sequence[SamplingRow], uniforms: Uniforms | None = None) -> dict[str, np.ndarray]:
    """Per row what `sample_tokens` asks for, by name; uniforms: of rows that are drawn step after step."""
    params = [row.params for row in rows]
    columns = (
        [row.temperature for row in rows],
        np.maximum([item.top_k for item in params], 0),
        [item.top_p for item in params],
        [item.min_p for item in params],
        _points(rows, first_uniforms if uniforms is None else uniforms.of),
    )
    return {name: np.array(column, DRAWN_BY[name]) for name, column in zip(DRAWN_BY, columns, strict=True)}


def _penalties(rows: Sequence[SamplingRow]) -> dict[str, np.ndarray]:
    return {
        "repetition": np.array([row.params.repetition_penalty for row in rows], np.float32),
        "presence": np.array([row.params.presence_penalty for row in rows], np.float32),
        "frequency": np.array([row.params.frequency_penalty for row in rows], np.float32),
    }


def _points(
    rows: Sequence[SamplingRow], uniforms: Callable[[Uint64Array, Uint64Array], npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    """`sampler.uniform` of every row that draws, 0 for the others."""
    points = np.zeros(len(rows))
    drawn = [number for number, row in enumerate(rows) if row.temperature]
    if drawn:
        streams = [rows[number].random_stream for number in drawn]
        keys, counters = (
            np.fromiter(chain.from_iterable(part), np.uint64).reshape(len(drawn), -1)
            for part in zip(*streams, strict=True)
        )
        points[drawn] = uniforms(keys, counters)
    return points


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
