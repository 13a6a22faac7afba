"""How memory units and context share one softmax."""

import math
from collections.abc import Sequence
from typing import Literal

Merge = Literal["auto", "paper", "plain"]


def merge_biases(weights: Sequence[float], merge: Merge, in_prompt: bool = False) -> tuple[list[float], float]:
    """The bias (natural log) on the logits of each unit, and the bias on the context's logits.

    paper: (log w_i ..., log(1 + sum w)), which makes one softmax over all segments equal to averaging the k + 1
    attentions of eq. 1 by their normalisers; plain: all zero. in_prompt: whether the units follow a prefix, which
    counts as context (docs/architecture.md, 2); there plain keeps log w_i. auto: plain in a prompt, else paper. Without
    units all of them are plain attention.
    Raises ValueError for a weight that is not a positive number: a unit that counts nothing must not be in memory.
    """
    for weight in weights:
        if not 0.0 < weight < math.inf:
            raise ValueError(f"a unit's weight must be a positive number, got {weight}")
    if merge == "plain" and not in_prompt:
        return [0.0] * len(weights), 0.0
    is_paper = merge == "paper" or not in_prompt
    return [math.log(weight) for weight in weights], math.log1p(math.fsum(weights)) if is_paper else 0.0
