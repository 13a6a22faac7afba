"""What the kernels must compute, in plain torch and float64, key by key.

Owns: one reference per kernel. Knows nothing of Triton, tiles or pieces; slow on purpose.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
