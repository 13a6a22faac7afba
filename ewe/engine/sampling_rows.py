"""What the sampler is told about a sequence, and what it answers.

A draw depends only on (seed, index, position, stream), so a request samples alike in any batch, and a rewind needs no
state to be restored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ewe.attention.metadata import TokenOnDevice
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


class PromptScore(NamedTuple):
    """The natural-log probability of a prompt's token where it stands, and of the likeliest tokens there."""

    logprob: float
    top: dict[int, float]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Tokens that have been chosen, perhaps not yet on the host.

    ids: int64 [rows], on the device of the logits; read: waits for the tokens and returns them.
    """

    ids: Tensor
    read: Callable[[], list[Token]]


@dataclass(slots=True, eq=False)
class PlaceholderToken:
    """A token that has been drawn on the device and not been read; void if the text does not go on with it."""

    place: TokenOnDevice
    is_void: bool = False


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """What the sampler needs to know about one sequence.

    seed: the sequence's own; index: which of `n` answers; stream: changes with every rewind. temperature overrides the
    request's (after a rewind that brought no new memory). banned: ids that must not be drawn now. num_placeholders:
    tokens after the output's that have been drawn and are not known yet.
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
    num_placeholders: int = 0

    @property
    def is_plain_greedy(self) -> bool:
        """Whether the likeliest token of the untouched logits is the answer."""
        restricted = self.params.logit_bias or self.banned or self.looks_back
        return self.temperature == 0 and not restricted

    @property
    def looks_back(self) -> bool:
        """Whether the draw depends on which tokens came before, so that it cannot be made before they are known."""
        p = self.params
        penalised = p.presence_penalty != 0 or p.frequency_penalty != 0 or p.repetition_penalty != 1
        return penalised or self.allowed is not None

    @property
    def random_stream(self) -> tuple[tuple[int, int], tuple[int, int, int, int]]:
        """Philox's key and counter of the next draw; a seed of any size and sign is taken."""
        position = len(self.output_ids) + self.num_placeholders
        return (self.seed & _MASK_64, self.index), (0, 0, position, self.stream)
