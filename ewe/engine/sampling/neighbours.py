"""Nearest neighbours among the tokens of passages: what one answer may copy, and what they say of its next token."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ewe.config import FeedbackConfig

_NEAREST = 1024
_MODEL_TEMPERATURE = 0.7


class CopiedText(NamedTuple):
    """An encoded passage: its id, its token ids, and the hidden state [tokens, H] of each."""

    passage_id: str
    token_ids: tuple[int, ...]
    states: Tensor


@dataclass(slots=True)
class Span:
    """Tokens that are being copied: the place of the next one, how many were taken, lambda when it began."""

    place: int
    confidence: float
    length: int = 0


@dataclass(slots=True, eq=False)
class Neighbours:
    """The places that one answer may copy from, and the span that it is copying.

    keys: [N, H], the hidden state at a passage's token; values: int64 [N], the token that follows it. token_ids: the
    values on the host; ends: per passage the place after its last; used: bool [N], places that were copied, which
    are not found again (or a text could go round in circles).
    """

    keys: Tensor | None = None
    values: Tensor | None = None
    used: Tensor | None = None
    token_ids: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    passage_ids: tuple[str, ...] = ()
    span: Span | None = None

    def extend(self, texts: Iterable[CopiedText]) -> None:
        """Adds the places of further passages.

        The first token of a text draws the attention of all others, and its state lies far from theirs: it is no place.
        """
        long_enough = [text for text in texts if len(text.token_ids) > 2]
        if not long_enough:
            return
        keys = [text.states[1:-1] for text in long_enough]
        for text in long_enough:
            self.token_ids += text.token_ids[2:]
            self.ends = (*self.ends, len(self.token_ids))
            self.passage_ids = (*self.passage_ids, text.passage_id)
        self.keys = torch.cat(keys if self.keys is None else [self.keys, *keys])
        self.values = torch.tensor(self.token_ids, device=self.keys.device)
        fresh = torch.zeros(len(self.token_ids), dtype=torch.bool, device=self.keys.device)
        if self.used is not None:
            fresh[: len(self.used)] = self.used
        self.used = fresh

    def fork(self) -> Neighbours:
        """The same places for another answer, none of them copied yet."""
        return replace(self, used=None if self.used is None else torch.zeros_like(self.used), span=None)

    def passage_of(self, place: int) -> str:
        """The id of the passage that a place lies in."""
        return self.passage_ids[bisect_right(self.ends, place)]

    def take(self, place: int) -> int:
        """Copies the token at a place; returns it."""
        assert self.used is not None
        self.used[place] = True
        return self.token_ids[place]

    def nearest(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """Scores float32 [k] and places int64 [k] of the nearest keys to query float32 [H], best first.

        A score is minus the squared Euclidean distance; k is 1,024 or the number of places that are left.
        """
        if self.keys is None or self.used is None:
            return query.new_empty(0), torch.empty(0, dtype=torch.long, device=query.device)
        scores = -(self.keys - query).square().sum(-1).masked_fill(self.used, torch.inf)
        scores, places = scores.topk(min(_NEAREST, len(scores)))
        left = int(scores.isfinite().sum())
        return scores[:left], places[:left]


class Mixture(NamedTuple):
    """What the next token is drawn from.

    probabilities: float32 [V]; confidence: lambda, the model's share in them; place: where a span would begin, None if
    nothing is left to copy.
    """

    probabilities: Tensor
    confidence: float
    place: int | None


def mix(logits: Tensor, query: Tensor, neighbours: Neighbours, config: FeedbackConfig) -> Mixture:
    """The model's distribution (logits float32 [V]) and that of the places near query float32 [H], as one.

    lambda = sigmoid((r - alpha) / tau) where r, the least squared distance over the largest, is small where few places
    stand out. A span begins at the place whose token is likeliest, the nearest one if several hold that token.
    """
    of_model = torch.softmax(logits / _MODEL_TEMPERATURE, -1)
    scores, places = neighbours.nearest(query)
    if not len(places) or neighbours.values is None:
        return Mixture(of_model, 1.0, None)
    values = neighbours.values[places]
    weights = torch.softmax(scores / len(query) ** 0.5, -1)
    of_places = torch.zeros_like(of_model).index_add_(0, values, weights)
    ratio = (scores[0] / scores[-1]).nan_to_num(0.0)  # 0 / 0: every place is the query itself
    share = torch.sigmoid((ratio - config.nest_alpha) / config.nest_tau)
    probabilities = share * of_model + (1 - share) * of_places
    best = places[probabilities[values].argmax()]  # places are sorted, and argmax takes the first of equals
    return Mixture(probabilities, float(share), int(best))


def is_acceptable(mixture: Mixture, token_id: int, gamma: float) -> bool:
    """Whether a proposed token may stand: it is more than gamma / 2 times as likely as the likeliest."""
    probabilities = mixture.probabilities
    return bool(probabilities[token_id] > 0.5 * gamma * probabilities.max())
