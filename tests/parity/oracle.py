"""Eq. 1 of the EWE paper as it is written: k + 1 attentions, averaged by their normalisers. In float64."""

from __future__ import annotations

from collections.abc import Sequence

import torch

Segment = tuple[torch.Tensor, torch.Tensor]


def literal_attention(
    query: torch.Tensor,
    units: Sequence[Segment],
    context: Segment,
    weights: Sequence[float],
    merge: str,
    scale: float,
    softcap: float | None = None,
) -> torch.Tensor:
    """[D] of query [D]; each segment is (keys [n, D], values [n, D]), empty ones included."""
    query = query.double()
    context_z, context_o = _attend(query, context, scale, softcap)
    results = [_attend(query, unit, scale, softcap) for unit in units]
    if merge == "plain":
        parts = [(z, o) for z, o in results] + [(context_z, context_o)]
    else:
        # alpha_i = w_i (Z_i + Z_c), h_i = attention over [unit_i; context]; once more the context alone.
        parts = [
            (weight * (z + context_z), (z * o + context_z * context_o) / (z + context_z))
            for weight, (z, o) in zip(weights, results, strict=True)
        ]
        parts.append((context_z, context_o))
    return sum(alpha * h for alpha, h in parts) / sum(alpha for alpha, _ in parts)


def literal_in_prompt(
    query: torch.Tensor,
    prefix: Segment,
    units: Sequence[Segment],
    context: Segment,
    weights: Sequence[float],
    merge: str,
    scale: float,
    softcap: float | None = None,
) -> torch.Tensor:
    """[D] of a query that follows units in a prompt: the prefix counts as context."""
    query = query.double()
    b = 1 + sum(weights) if merge == "paper" else 1.0
    parts = [(b, *_attend(query, segment, scale, softcap)) for segment in (prefix, context)]
    parts += [(w, *_attend(query, unit, scale, softcap)) for w, unit in zip(weights, units, strict=True)]
    return sum(w * z * o for w, z, o in parts) / sum(w * z for w, z, _ in parts)


def literal_shares(
    query: torch.Tensor, units: Sequence[Segment], context: Segment, weights: Sequence[float], scale: float
) -> torch.Tensor:
    """[k + 1]: w_i Z_i and (1 + sum w) Z_c, over their sum."""
    query = query.double()
    parts = [weight * _attend(query, unit, scale, None)[0] for weight, unit in zip(weights, units, strict=True)]
    parts.append((1 + sum(weights)) * _attend(query, context, scale, None)[0])
    return torch.stack(parts) / sum(parts)


def _attend(
    query: torch.Tensor, segment: Segment, scale: float, softcap: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Z and o of one segment; an empty one has Z = 0 and o = 0."""
    keys, values = (item.double() for item in segment)
    logits = keys @ query * scale
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    exponentials = logits.exp()
    normaliser = exponentials.sum()
    return normaliser, exponentials @ values / normaliser.clamp_min(1e-300)
