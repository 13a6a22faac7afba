"""A forward pass: what it is to hold and, once it is launched, whose next tokens it draws and how they come home."""

import time
from collections import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from ewe.engine.attention.metadata import ForwardRow
from ewe.engine.attention.packed import to_device, to_host
from ewe.engine.model_executor.model_runner import ForwardResult
from ewe.engine.sampling.sampler import Drawing, PlaceholderToken, PromptScore, SamplingRow, Token, sample
from ewe.engine.sequence import Sequence
from ewe.engine.units.unit_cache import EncodedUnit, UnitCache


@dataclass(slots=True)
class SchedulerOutput:
    """The rows of a pass that the scheduler plans, units before contexts, with what each belongs to.

    A layer writes the keys of all rows before any of them attends, so a context may be in the pass of its own units.
    sequences: those whose contexts are in it; encoded: those whose pending units are all there with this pass.
    candidates: all that were unfinished, in order of arrival; the youngest give way first.
    held: references of the plan's own on each unit and its prefix, lest their blocks are given to others before the
    pass. budget: tokens that still fit; busy: sequences that must keep their blocks until the pass is over; progressed:
    whether a sequence came back or got its units, so that there is something to do even without rows.
    """

    units: list[EncodedUnit] = field(default_factory=list)
    held: list[EncodedUnit] = field(default_factory=list)
    sequences: list[Sequence] = field(default_factory=list)
    encoded: list[Sequence] = field(default_factory=list)
    rows: list[ForwardRow] = field(default_factory=list)
    candidates: abc.Sequence[Sequence] = ()
    budget: int = 0
    busy: dict[Sequence, None] = field(default_factory=dict)
    progressed: bool = False

    def add_unit(self, unit: EncodedUnit, prefix: EncodedUnit | None, limit: int, cache: UnitCache) -> int:
        """Adds those of a unit's tokens that are in no pass yet, at most `limit`; returns how many.

        prefix: what the unit follows. The unit is ready with its last token: for all that comes after it, in this pass
        and later.
        """
        begin = unit.num_planned
        tokens = unit.token_ids[begin : begin + max(limit, 0)]
        if not tokens:
            return 0
        unit.num_planned += len(tokens)
        unit.ready = unit.num_planned == len(unit.token_ids)
        row = ForwardRow(
            token_ids=tokens,
            start_position=len(unit.prefix_ids) + begin,
            context_slots=unit.table.slots()[: unit.num_planned],
            wants_logits=False,
            prefix_slots=None if prefix is None else prefix.table.slots(),
            adapter=unit.adapter,
        )
        self.rows.insert(len(self.units), row)
        self.units.append(unit)
        for held in (unit,) if prefix is None else (unit, prefix):
            cache.share(held)
            self.held.append(held)
        self.budget -= len(tokens)
        return len(tokens)


@dataclass(slots=True)  # not frozen, because one is made for every row of every step
class Writer:
    """A sequence whose next token is drawn from row `position` of a pass's logits; attention: by passage, if noted."""

    sequence: Sequence
    position: int
    attention: dict[str, float] | None


class Processor(Protocol):
    """What may replace distributions between a pass and the draw of its tokens; draws then wait for one another."""

    def __call__(
        self, logits: torch.Tensor, sequences: abc.Sequence[Sequence], rows: abc.Sequence[SamplingRow]
    ) -> tuple[torch.Tensor, abc.Sequence[SamplingRow]]:
        """New logits float32 [rows, vocab] and rows for the sampler, in the same order."""
        ...


@dataclass(slots=True, eq=False)
class InflightBatch:
    """One pass on its way. busy: the sequences that it works for."""

    busy: list[Sequence]
    launched: float = field(default_factory=time.monotonic)
    may_be_followed: bool = False
    _drawings: list[Drawing] = field(default_factory=list)
    _drawn: list[tuple[Writer, PlaceholderToken]] = field(default_factory=list)

    def draw(
        self,
        result: ForwardResult,
        writers: abc.Sequence[Writer],
        rows: abc.Sequence[SamplingRow],
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
            from ewe.engine.sampling.fused_sampler import fetch  # needs Triton, as what drew them did

            drawing = fetch(result.drawn)
        looks_back = result.drawn is None and any(row.looks_back for row in rows)
        retried = [item for item in writers if item.sequence.feedback.retry_sentence is not None]
        self.may_be_followed = processor is None and not looks_back and not retried
        self._await(drawing, writers)

    def score(self, sequence: Sequence, logits: torch.Tensor) -> None:
        """Has the labels that a prompt's request names scored by the logits after it, float32 [vocab]."""
        self._await(score_labels(logits, sequence.request.original.label_token_ids), [Writer(sequence, 0, None)])

    def _await(self, drawing: Drawing, writers: abc.Sequence[Writer]) -> None:
        self._drawings.append(drawing)
        ids, drawn = drawing.ids, self._drawn
        for index, writer in enumerate(writers):
            token = writer.sequence.schedule.placeholder = PlaceholderToken(ids, index)
            drawn.append((writer, token))

    def read(self) -> list[tuple[Sequence, Token]]:
        """Waits for the tokens; those of texts that have ended or gone another way are left out."""
        tokens = [token for drawing in self._drawings for token in drawing.read()]
        taken = []
        for (writer, placeholder), token in zip(self._drawn, tokens, strict=True):
            sequence, attention = writer.sequence, writer.attention
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
            drawn = sampling_row(sequence)
            if drawn.changes_logits or drawn.params.logprobs:
                return None
            rows.append(drawn)
    return rows


def _logits_of(writers: abc.Sequence[Writer], logits: torch.Tensor) -> torch.Tensor:
    """Of logits [positions, vocab] those that the writers' tokens are drawn from."""
    positions = np.array([writer.position for writer in writers], np.int64)
    if np.array_equal(positions, np.arange(len(logits))):
        return logits
    return logits.index_select(0, to_device({"positions": positions}, logits.device)["positions"])


def by_passage(sequence: Sequence, shares: npt.NDArray[np.float32]) -> dict[str, float]:
    """The shares of attention by passage, of the memory that the pass ran under; shares: per unit."""
    total: dict[str, float] = {}
    for unit, share in zip(sequence.memory.units, shares.tolist(), strict=False):
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
        begin, end = end, end + (len(row.token_ids) if row.all_logits else row.wants_logits)
        if row.all_logits:
            _score(sequence, row.start_position - sequence.request.start_position, result.logits[begin:end])
        if row.wants_logits:
            yield sequence, end - 1, shares


def score_labels(logits: torch.Tensor, label_token_ids: abc.Sequence[int]) -> Drawing:
    """The likeliest of these tokens, with the log-probabilities of all of them; logits: float32 [vocab]."""
    labels = to_device({"labels": np.array(label_token_ids, np.int64)}, logits.device)["labels"]
    logprobs = torch.log_softmax(logits, dim=-1).index_select(0, labels)
    ids = labels.gather(0, logprobs.argmax(0, keepdim=True))
    arrived = to_host({"ids": ids, "logprobs": logprobs})

    def read() -> list[Token]:
        best, scores = int(arrived()["ids"]), dict(zip(label_token_ids, arrived()["logprobs"].tolist(), strict=True))
        return [Token(best, scores[best], 0.0, scores)]

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
