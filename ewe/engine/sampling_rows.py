"""What the sampler is told about a sequence, and what it answers.

Owns: SamplingRow, Token, and where a row's random numbers come from. Knows SamplingParams; no logits. A draw depends
only on (seed, index, position, stream), so a request samples alike in any batch, and a rewind needs no state to be
restored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ewe.sampling import SamplingParams

_MASK_64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token with what the model thought of it.

    logprob: natural log, of the model's own distribution; entropy: nats of that distribution (0 unless asked for).
    attention: share per passage id, if attribution is on; the rest to 1 went to the context.
    """

    id: int
    logprob: float
    entropy: float
    top_logprobs: Mapping[int, float] | None = None
    attention: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """What the sampler needs to know about one sequence.

    seed: the sequence's own; index: which of `n` answers; stream: changes with every rewind. temperature overrides the
    request's (after a rewind that brought no new memory). banned: ids that must not be drawn now.
    allowed: bool [vocab], the only ids that may be drawn now (None: all).
    """

    params: SamplingParams
    prompt_ids: Sequence[int]
    output_ids: Sequence[int]
    seed: int
    index: int = 0
    stream: int = 0
    temperature: float = 0.0
    banned: Sequence[int] = ()
    allowed: npt.NDArray[np.bool_] | None = None

    @property
    def is_plain_greedy(self) -> bool:
        """Whether the likeliest token of the untouched logits is the answer."""
        p = self.params
        untouched = p.presence_penalty == 0 and p.frequency_penalty == 0 and p.repetition_penalty == 1
        restricted = p.logit_bias or self.banned or self.allowed is not None
        return self.temperature == 0 and untouched and not restricted

    @property
    def random_stream(self) -> tuple[tuple[int, int], tuple[int, int, int, int]]:
        """Philox's key and counter of the next draw; a seed of any size and sign is taken."""
        return (self.seed & _MASK_64, self.index), (0, 0, len(self.output_ids), self.stream)
