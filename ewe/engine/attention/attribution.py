"""Which unit a token's attention came from."""

import torch


def segment_lse(logits: torch.Tensor, segments: torch.Tensor, num_segments: int) -> torch.Tensor:
    """Natural log of each segment's softmax normaliser, float32 [..., num_segments]; -inf for an empty segment.

    logits: float32 [..., L], biases included; segments: int64, broadcast to logits; keys of segment -1 count nowhere.
    """
    # Keys that count nowhere go to a segment of their own, which is cut off at the end.
    target = torch.where(segments < 0, num_segments, segments).expand_as(logits)
    shape = (*logits.shape[:-1], num_segments + 1)
    peak = logits.new_full(shape, -torch.inf).scatter_reduce(-1, target, logits, "amax")
    peak = torch.where(peak.isfinite(), peak, 0.0)
    total = logits.new_zeros(shape).scatter_add(-1, target, (logits - peak.gather(-1, target)).exp())
    return (total.log() + peak)[..., :-1]


def segment_shares(lse: torch.Tensor) -> torch.Tensor:
    """Share of each segment, [..., num_segments], summing to 1; all 0 where every segment is empty."""
    total = lse.logsumexp(-1, keepdim=True)
    return torch.where(total.isfinite(), (lse - total).exp(), 0.0)
