"""Nearest-neighbour speculative decoding: replaces each row's distribution, and copies spans while they are likely.

The paper verifies a span in one pass. Whether a token stands depends on nothing after it, so here it is looked at when
its turn comes: the texts are the same, and every token takes a pass.
"""

from collections import abc
from dataclasses import replace

import numpy as np
import torch

from ewe.config import FeedbackConfig
from ewe.engine.attention.packed import to_device
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.sampling.neighbours import CopiedText, Mixture, Neighbours, Span, is_acceptable, mix
from ewe.engine.sampling.sampler import SamplingRow
from ewe.engine.schedule_state import PendingUnit
from ewe.engine.sequence import Sequence


class NearestNeighbours:
    """A logits processor (see `Processor`) over a pool that keeps hidden states."""

    def __init__(self, config: FeedbackConfig, pool: KVPool) -> None:
        self._config, self._pool = config, pool

    def __call__(
        self, logits: torch.Tensor, sequences: abc.Sequence[Sequence], rows: abc.Sequence[SamplingRow]
    ) -> tuple[torch.Tensor, list[SamplingRow]]:
        """Log-probabilities of the mixtures float32 [rows, V], and rows that may draw nothing but a copied token."""
        assert self._pool.states is not None
        last = np.array([sequence.table.slots()[-1] for sequence in sequences], np.int64)
        queries = self._pool.states.index_select(0, to_device({"last": last}, logits.device)["last"]).float()
        mixtures, chosen = [], []
        for sequence, row, query, line in zip(sequences, rows, queries, logits, strict=True):
            neighbours = _neighbours_of(sequence)
            mixture = mix(line, query, neighbours, self._config)
            mixtures.append(mixture.probabilities.log())
            token_id = self._copied(sequence, neighbours, row, mixture)
            chosen.append(row if token_id is None else _only(row, token_id, logits.shape[1]))
        return torch.stack(mixtures), chosen

    def collect(self, sequence: Sequence) -> None:
        """Takes the hidden states of the sequence's pending passages, which have been encoded."""
        pending = [unit for unit in sequence.schedule.pending_units if unit.lane is None]
        if not pending:
            return
        neighbours = _neighbours_of(sequence)
        neighbours.extend(map(self._text, pending))
        tokens = len(neighbours.token_ids)
        cached = sum(unit.was_cached for unit in pending)
        sequence.record("neighbours", ids=[unit.passage.id for unit in pending], num_tokens=tokens, cached=cached)

    def _text(self, pending: PendingUnit) -> CopiedText:
        assert pending.encoded is not None
        assert self._pool.states is not None
        slots = torch.tensor(pending.encoded.table.slots(), device=self._pool.device)
        return CopiedText(pending.passage.id, pending.encoded.token_ids, self._pool.states.index_select(0, slots))

    def _copied(self, sequence: Sequence, neighbours: Neighbours, row: SamplingRow, mixture: Mixture) -> int | None:
        """The token that is copied now, if any; a token that is refused ends its span, and is drawn anew."""
        if neighbours.span is None:
            if mixture.place is None or mixture.confidence >= self._config.nest_delta:
                return None
            neighbours.span = Span(mixture.place, mixture.confidence)
        span = neighbours.span
        token_id = neighbours.token_ids[span.place]
        if not (_may_draw(row, token_id) and is_acceptable(mixture, token_id, self._config.nest_gamma)):
            sequence.end_span()
            return None
        neighbours.take(span.place)
        span.length += 1
        sequence.stats.tokens_copied += 1
        if span.length == self._config.nest_span or span.place + 1 in neighbours.ends:
            sequence.end_span()
        else:
            span.place += 1
        return token_id


def _neighbours_of(sequence: Sequence) -> Neighbours:
    """What the sequence may copy; nothing at first."""
    sequence.neighbours = sequence.neighbours or Neighbours()
    return sequence.neighbours


def _may_draw(row: SamplingRow, token_id: int) -> bool:
    return token_id not in row.banned and (row.allowed is None or bool(row.allowed[token_id]))


def _only(row: SamplingRow, token_id: int, vocab_size: int) -> SamplingRow:
    allowed = np.zeros(vocab_size, np.bool_)
    allowed[token_id] = True
    return replace(row, allowed=allowed)
