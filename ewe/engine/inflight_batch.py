"""A pass that has been launched: whose next tokens it draws, how they come home, and which logits are whose."""

import time
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Batch
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from ewe.attention.metadata import TokenOnDevice
from ewe.attention.packed import to_device, to_host
from ewe.engine.model_runner import ForwardResult
from ewe.engine.sampler import Drawing, PlaceholderToken, PromptScore, SamplingRow, Token, sample
from ewe.engine.scheduler_output import SchedulerOutput
from ewe.engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Writer:
    """A sequence whose next token is drawn from row `position` of a pass's logits; shares: of attention, per unit."""

    sequence: Sequence
    position: int
    shares: npt.NDArray | None  # type: ignore[type-arg]


class Processor(Protocol):
    """What may replace distributions between a pass and the draw of its tokens; draws then wait for one another."""

    def __call__(
        self, logits: torch.Tensor, sequences: Batch[Sequence], rows: Batch[SamplingRow]
    ) -> tuple[torch.Tensor, Batch[SamplingRow]]:
        """New logits float32 [rows, vocab] and rows for the sampler, in the same order."""
        ...


@dataclass(slots=True, eq=False)
class InflightBatch:
    """One pass on its way. busy: the sequences that it works for."""

    busy: list[Sequence]
    launched: float = field(default_factory=time.monotonic)
    may_be_followed: bool = False
    _drawings: list[Drawing] = field(default_factory=list)
    _drawn: list[tuple[Sequence, PlaceholderToken, dict[str, float] | None]] = field(default_factory=list)

    def draw(
        self,
        result: ForwardResult,
        writers: Batch[Writer],
        rows: Batch[SamplingRow],
        with_entropy: bool,
        processor: Processor | None = None,
    ) -> None:
        """Draws a token for every writer, unless the pass has; its sequence has a placeholder token from now on.

        The pass may be followed by another before its tokens are read unless a
        sequence's next draw depends on what they are.
        processor: has the last word on what is drawn from.
        """
        if result.drawn is None:
            logits = _logits_of(writers, result.logits)
            if processor is not None:
                logits, rows = processor(logits, [writer.sequence for writer in writers], rows)
            drawing = sample(logits, rows, with_entropy)
        else:
            from ewe.engine.fused_sampler import fetch  # needs Triton, as what drew them did

            drawing = fetch(result.drawn)
        self.may_be_followed = processor is None and not any(
            row.looks_back or writer.sequence.feedback.hot_sentence is not None
            for row, writer in zip(rows, writers, strict=True)
        )
        self._await(drawing, [(writer.sequence, _by_passage(writer)) for writer in writers])

    def score(self, sequence: Sequence, logits: torch.Tensor) -> None:
        """Has the labels that a prompt's request names scored by the logits after it, float32 [vocab]."""
        self._await(score_labels(logits, sequence.request.asked.label_token_ids), [(sequence, None)])

    def _await(self, drawing: Drawing, writers: Batch[tuple[Sequence, dict[str, float] | None]]) -> None:
        self._drawings.append(drawing)
        for index, (sequence, attention) in enumerate(writers):
            token = PlaceholderToken(TokenOnDevice(drawing.ids, index))
            sequence.schedule.placeholder = token
            self._drawn.append((sequence, token, attention))

    def read(self) -> list[tuple[Sequence, Token]]:
        """Waits for the tokens; those of texts that have ended or gone another way are left out."""
        tokens = [token for drawing in self._drawings for token in drawing.read()]
        taken = []
        for (sequence, placeholder, attention), token in zip(self._drawn, tokens, strict=True):
            if sequence.schedule.placeholder is placeholder:
                sequence.schedule.placeholder = None
            if not placeholder.is_void and not sequence.is_finished:
                taken.append((sequence, token if attention is None else replace(token, attention=attention)))
        return taken


def known_draws(plan: SchedulerOutput, sampling_row: Callable[[Sequence], SamplingRow]) -> list[SamplingRow] | None:
    """How the token after each row of logits of a pass is drawn, in their order; None if the pass cannot draw them.

    It can if each is for one sequence, from the model's own logits, and nothing is asked for beside the token.
    """
    rows = []
    for sequence, row in zip(plan.sequences, plan.rows[len(plan.units) :], strict=True):
        if row.all_logits or sequence.siblings or sequence.grammar is not None or sequence.is_scored:
            return None
        if row.wants_logits:
            rows.append(sampling_row(sequence))
            if rows[-1].changes_logits or rows[-1].params.logprobs:
                return None
    return rows


def _logits_of(writers: Batch[Writer], logits: torch.Tensor) -> torch.Tensor:
    """Of logits [positions, vocab] those that the writers' tokens are drawn from."""
    positions = np.array([writer.position for writer in writers], np.int64)
    if np.array_equal(positions, np.arange(len(logits))):
        return logits
    return logits.index_select(0, to_device({"positions": positions}, logits.device)["positions"])


def _by_passage(writer: Writer) -> dict[str, float] | None:
    """The shares of attention by passage, of the memory that the pass ran under."""
    if writer.shares is None:
        return None
    total: dict[str, float] = {}
    for unit, share in zip(writer.sequence.memory.units, writer.shares.tolist(), strict=False):
        total[unit.passage.id] = total.get(unit.passage.id, 0.0) + share
    return total


def last_tokens(
    plan: SchedulerOutput, result: ForwardResult
) -> Iterator[tuple[Sequence, int, npt.NDArray[np.float32] | None]]:
    """Every sequence whose last token is in the pass, with the place of its logits and its shares of attention.

    Prompts whose tokens are to be scored are scored on the way.
    """
    first, end = len(plan.units), 0
    for sequence, row, shares in zip(plan.sequences, plan.rows[first:], result.attention[first:], strict=True):
        begin, end = end, end + (len(row.token_ids) if row.all_logits else int(row.wants_logits))
        if row.all_logits:
            _score(sequence, row.start_position - sequence.request.start_position, result.logits[begin:end])
        if row.wants_logits:
            yield sequence, end - 1, shares


def score_labels(logits: torch.Tensor, label_token_ids: Batch[int]) -> Drawing:
    """The likeliest of these tokens, with the log-probabilities of all of them; logits: float32 [vocab]."""
    labels = to_device({"labels": np.array(label_token_ids, np.int64)}, logits.device)["labels"]
    logprobs = torch.log_softmax(logits, dim=-1).index_select(0, labels)
    ids = labels.gather(0, logprobs.argmax(0, keepdim=True))
    arrived = to_host({"ids": ids, "logprobs": logprobs})

    def read() -> list[Token]:
        best, found = int(arrived()["ids"]), dict(zip(label_token_ids, arrived()["logprobs"].tolist(), strict=True))
        return [Token(best, found[best], 0.0, found)]

    return Drawing(ids, read)


def _score(sequence: Sequence, begin: int, logits: torch.Tensor) -> None:
    """Notes the scores of the tokens that follow prompt tokens `begin` and on.

    logits: float32 [tokens, vocab], at these tokens. The prompt's last token is followed by the answer's first.
    """
    following = sequence.request.prompt_ids[begin + 1 : begin + 1 + len(logits)]
    if not following:
        return
    logprobs = torch.log_softmax(logits[: len(following)], dim=-1)
    chosen = logprobs.gather(1, torch.tensor(following, device=logits.device).unsqueeze(1)).squeeze(1).tolist()
    count = min(sequence.request.params.prompt_logprobs or 0, logits.shape[-1])
    values, ids = logprobs.topk(count)
    for place, (logprob, top) in enumerate(zip(chosen, zip(ids.tolist(), values.tolist(), strict=True), strict=True)):
        sequence.prompt_scores[begin + 1 + place] = PromptScore(logprob, dict(zip(*top, strict=True)))
