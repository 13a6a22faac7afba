"""What the kernels must compute, in plain torch and float64, key by key."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import gelu


def attention_state(
    query: Tensor, keys: Tensor, values: Tensor, scale: float, softcap: float | None = None
) -> tuple[Tensor, Tensor]:
    """Output [Hq, Dv] and LSE [Hq] (natural log, float64) of query [Hq, D] over keys [n, Hkv, D], values [n, Hkv, Dv].

    Without keys the output is 0 and the LSE -inf.
    """
    heads = query.shape[0] // keys.shape[1]
    keys, values = (item.double().repeat_interleave(heads, 1) for item in (keys, values))
    logits = torch.einsum("hd,nhd->hn", query.double(), keys) * scale
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    return torch.einsum("hn,nhd->hd", torch.softmax(logits, -1), values), torch.logsumexp(logits, -1)


def merged_state(
    outputs: Tensor, lses: Tensor, biases: Tensor, sinks: Tensor | None = None, sink_bias: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Output [Hq, Dv] and LSE [Hq] in float64 of one row's states: outputs [n, Hq, Dv], lses [n, Hq], biases [n]."""
    logits = lses.double() + biases.double()[:, None]
    everything = logits if sinks is None else torch.cat([logits, (sinks.double() + sink_bias)[None]])
    lse = torch.logsumexp(everything, 0)
    weights = torch.where(lse.isfinite(), (logits - lse).exp(), 0.0)
    return torch.einsum("nh,nhd->hd", weights, outputs.double()), lse


def rotated(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The rotary embedding in halves, float64 [H, T, D]: states [H, T, D]; cos, sin [T, R] for the first R columns."""
    first, rest = states.double().tensor_split([cos.shape[1]], -1)
    one, other = first.chunk(2, -1)
    return torch.cat([first * cos.double() + torch.cat([-other, one], -1) * sin.double(), rest], -1)


def scaled_e4m3(states: Tensor) -> tuple[Tensor, Tensor]:
    """What e4m3 (OCP 8-bit floating point, table 1) with a scale per row leaves of states [..., D], and the scales.

    float64 [..., D] and float32 [...]. Dividing is done in float32, the rounding to the nearest with ties to even.
    """
    scales = states.float().abs().amax(-1).clamp_min(2.0**-100) / 448
    wanted = (states.float() / scales[..., None]).double()
    steps = 2.0 ** (torch.frexp(wanted).exponent - 1).clamp_min(-6).double() / 8
    return torch.round(wanted / steps) * steps * scales[..., None], scales


def penalised(
    logits: Tensor,
    pairs: Sequence[tuple[int, int, int, float]],
    repetition: Tensor,
    presence: Tensor,
    frequency: Tensor,
) -> Tensor:
    """logits [rows, vocab] in float64 with the penalties of (row, token, count, bias) each, as `penalise` has them."""
    result = logits.double()
    for row, token, count, bias in pairs:
        value = float(result[row, token])
        if count >= 0:
            value = value / float(repetition[row]) if value > 0 else value * float(repetition[row])
        if count > 0:
            value -= float(presence[row]) + float(frequency[row]) * count
        result[row, token] = value + bias
    return result


def sampled(logits: Tensor, temperature: float, top_k: int, top_p: float, min_p: float, point: float) -> int:
    """The token at `point` of the cumulative distribution, by sorting: logits [vocab], the rest as `sample_tokens`."""
    values, ids = logits.double().sort(descending=True, stable=True)
    if temperature == 0:
        return int(ids[0])
    if top_k > 0:
        values, ids = values[:top_k], ids[:top_k]
    probabilities = torch.softmax(values / temperature, -1)
    keep = int(((probabilities.cumsum(0) - probabilities) < top_p).sum()) if top_p < 1 else len(ids)
    keep = min(keep, int((probabilities >= min_p * probabilities[0]).sum()), int(probabilities.count_nonzero()))
    cumulative = probabilities[:keep].cumsum(0)
    return int(ids[min(int((cumulative <= point * cumulative[-1]).sum()), keep - 1)])


def small_product(inputs: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """float64 [T, out]: the rows [T, in] times a matrix [out, in] whose rows are scaled by [out], plus bias [out]."""
    product = inputs.double() @ (weight.double() * scale.double()[:, None]).T
    return product if bias is None else product + bias.double()


def rms_normed(states: Tensor, scale: Tensor, eps: float) -> Tensor:
    """float64 [..., n]: states [..., n] over their root mean square, eps added to its square, times scale [n]."""
    exact = states.double()
    return exact / (exact.square().mean(-1, keepdim=True) + eps).sqrt() * scale.double()


def gated_product(gate: Tensor, up: Tensor, activation: str) -> Tensor:
    """float64: activation(gate) * up; "silu", or the tanh form of GELU for "gelu_tanh"."""
    exact = gate.double()
    active = exact * torch.sigmoid(exact) if activation == "silu" else gelu(exact, approximate="tanh")
    return active * up.double()
