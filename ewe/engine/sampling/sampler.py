"""Choosing the next token of every row from its logits: what the sampler is told of a sequence, and what it answers.

A draw depends only on (seed, index, position, stream, wording), so a request samples alike in any batch, and a rewind
needs no state to be restored.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ewe.engine.attention.choose import missing_for_kernels
from ewe.engine.attention.metadata import TokenOnDevice
from ewe.types.sampling_params import SamplingParams

_MASK_64 = (1 << 64) - 1


# Tokens and rows are not to be changed, but not frozen either: one of each is made for every row of every step, and a
# frozen one takes three times as long to make.


@dataclass(slots=True)
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
class PlaceholderToken(TokenOnDevice):
    """A token that has been drawn on the device and not been read; void if the text does not go on with it."""

    is_void: bool = False


@dataclass(slots=True, eq=False)
class SamplingRow:
    """What the sampler needs to know about one sequence; step after step the same object while nothing has changed.

    seed: the sequence's own; index: which of `n` answers; stream: changes with every rewind; wording: which of those
    that are drawn of one sentence. output_ids grows with the text. temperature overrides the request's (after a rewind
    that brought no new memory). banned: ids that must not be drawn now. num_placeholders: tokens after the output's
    that have been drawn and are not known yet. allowed: bool [vocab], the only ids that may be drawn now (None: all).
    looks_back: whether the draw depends on which tokens came before, so that it cannot be made before they are known;
    changes_logits: whether it is from other logits than the model's.
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
    wording: int = 0
    looks_back: bool = field(init=False)
    changes_logits: bool = field(init=False)

    def __post_init__(self) -> None:
        p = self.params
        penalised = p.presence_penalty != 0 or p.frequency_penalty != 0 or p.repetition_penalty != 1
        self.looks_back = penalised or self.allowed is not None
        self.changes_logits = bool(p.logit_bias or self.banned or self.looks_back)

    @property
    def is_plain_greedy(self) -> bool:
        """Whether the likeliest token of the untouched logits is the answer."""
        return self.temperature == 0 and not self.changes_logits

    @property
    def position(self) -> int:
        """The place of the next token in the output."""
        return len(self.output_ids) + self.num_placeholders

    @property
    def random_stream(self) -> tuple[tuple[int, int], tuple[int, int, int, int]]:
        """Philox's key and counter of the next draw; a seed of any size and sign is taken."""
        return (self.seed & _MASK_64, self.index), (0, self.wording, self.position, self.stream)


def sample(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """One token per row; where the kernels run, nothing waits for the device before they are read.

    logits: float32 [rows, vocab], finite or -inf; rows: in the same order; with_entropy: whether to compute entropies.
    A row that holds anything else gets some token, whose logprob is NaN.
    """
    if logits.is_cuda and _kernels_run_on(logits.device):
        from ewe.engine.sampling.fused_sampler import sample_fused

        return sample_fused(logits, rows, with_entropy)
    return sample_in_torch(logits, rows, with_entropy)


def sample_in_torch(logits: Tensor, rows: Sequence[SamplingRow], with_entropy: bool) -> Drawing:
    """As `sample`, row by row, by sorting: what the kernels must equal."""
    logprobs = torch.log_softmax(logits, dim=-1)
    entropies = torch.special.entr(logprobs.exp()).sum(dim=-1).tolist() if with_entropy else [0.0] * len(rows)
    ids = logits.argmax(dim=-1).tolist()
    for position, row in enumerate(rows):
        if not row.is_plain_greedy:
            ids[position] = _draw(logits[position], row)
    index = torch.tensor(ids, device=logits.device).unsqueeze(1)
    chosen = logprobs.gather(1, index).squeeze(1).tolist()
    tokens = [
        Token(ids[i], chosen[i], entropies[i], _top(logprobs[i], row.params.logprobs)) for i, row in enumerate(rows)
    ]
    return Drawing(index.squeeze(1), lambda: tokens)


@cache
def _kernels_run_on(device: torch.device) -> bool:
    return missing_for_kernels(device) is None


def _top(logprobs: Tensor, count: int | None) -> dict[int, float] | None:
    if not count:
        return None
    values, ids = logprobs.topk(min(count, logprobs.shape[-1]))
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


def _draw(logits: Tensor, row: SamplingRow) -> int:
    adjusted = _adjust(logits.clone(), row)
    if row.temperature == 0:
        return int(adjusted.argmax())
    probabilities, ids = _truncated(adjusted / row.temperature, row.params)
    cumulative = probabilities.double().cumsum(dim=-1)
    point = uniform(row) * float(cumulative[-1])
    return int(ids[min(int(torch.searchsorted(cumulative, point, right=True)), len(ids) - 1)])


def _adjust(logits: Tensor, row: SamplingRow) -> Tensor:
    """Penalties and biases, in place; repetition counts the prompt too, the other two only the output (as in vLLM)."""
    params = row.params
    output = torch.tensor(row.output_ids, dtype=torch.long, device=logits.device)
    if params.repetition_penalty != 1:
        prompt = torch.tensor(row.prompt_ids, dtype=torch.long, device=logits.device)
        seen = torch.unique(torch.cat([output, prompt]))
        values = logits[seen]
        scale = params.repetition_penalty
        logits[seen] = torch.where(values > 0, values / scale, values * scale)
    if len(output) and (params.presence_penalty or params.frequency_penalty):
        ids, counts = torch.unique(output, return_counts=True)
        logits[ids] -= params.presence_penalty + params.frequency_penalty * counts
    for token_id, bias in params.logit_bias.items():
        logits[token_id] += bias
    if row.banned:
        logits[list(row.banned)] = -math.inf
    if row.allowed is not None:
        logits.masked_fill_(torch.from_numpy(~row.allowed).to(logits.device), -math.inf)
    return logits


def _truncated(logits: Tensor, params: SamplingParams) -> tuple[Tensor, Tensor]:
    """Probabilities and ids, likeliest first, after top_k, then top_p, then min_p."""
    values, ids = logits.sort(descending=True, stable=True)
    if params.top_k > 0:
        values, ids = values[: params.top_k], ids[: params.top_k]
    probabilities = torch.softmax(values, dim=-1)
    keep = int(probabilities.count_nonzero())  # no rounding may lead to an impossible token
    if params.top_p < 1:
        before = probabilities.cumsum(dim=-1) - probabilities
        keep = min(keep, int((before < params.top_p).sum()))
    if params.min_p > 0:
        keep = min(keep, int((probabilities >= params.min_p * probabilities[0]).sum()))
    keep = max(keep, 1)
    return probabilities[:keep], ids[:keep]


def uniform(row: SamplingRow) -> float:
    """A number in [0, 1) that depends on seed, answer, position and rewind count alone."""
    key, counter = (np.array(part, dtype=np.uint64) for part in row.random_stream)
    return float(np.random.Generator(np.random.Philox(key=key, counter=counter)).random())
