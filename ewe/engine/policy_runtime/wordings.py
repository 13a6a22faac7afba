"""Several wordings of one sentence, drawn side by side: each continues the same text over the same blocks and units."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field, replace

from ewe.engine.evidence.sentence_checks import FeedbackState
from ewe.engine.evidence.workers import Job, Worker
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.output import record_checking, show
from ewe.engine.policy_state import Check
from ewe.engine.sampling.sampler import Token
from ewe.engine.schedule_state import ScheduleState
from ewe.engine.sequence import Sequence
from ewe.engine.units.working_memory import WorkingMemory
from ewe.text.prefill import in_context
from ewe.types import FinishReason, VerificationRequest, VerificationResult


@dataclass(frozen=True, slots=True)
class Wording:
    """One drawing of a sentence. before: the text up to it; text: empty if the answer ended without one.

    tokens: those after the text that was there; the first words of what follows may be among them, as they showed that
    the sentence was complete. finish: why the whole text ended with it, if it did.
    """

    before: str
    text: str
    tokens: tuple[Token, ...]
    finish: FinishReason | None

    @property
    def mean_logprob(self) -> float:
        """The mean natural-log probability of its tokens."""
        return sum(token.logprob for token in self.tokens) / max(len(self.tokens), 1)


@dataclass(slots=True, eq=False)
class Drawing:
    """Wordings of the sentence with a number, on their way. sides: the sequences that write them, once it has begun."""

    sentence: int
    count: int
    sides: list[Sequence] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether all of them are there."""
        return all(side.is_finished for side in self.sides)


@dataclass(frozen=True, slots=True, eq=False)
class WordingTask:
    """What a sequence is that draws one wording, of several, of a sentence of another one; both by their numbers."""

    main: Sequence
    wording: int
    sentence: int


def ask(sequence: Sequence, sentence: int, count: int) -> None:
    """Asks for wordings of the sentence that is next; they are drawn once the memory is there.

    Raises ValueError where the text does not end before it, or waits for something else.
    """
    _expect_quiet(sequence)
    if sentence != len(sequence.output_text.sentences):
        raise ValueError("Draw: the text does not end where the sentence begins")
    sequence.policy.drawing = Drawing(sentence, count)


def begin(sequence: Sequence, drawing: Drawing, memory_manager: MemoryManager) -> list[Sequence]:
    """The sequences that write the wordings: forks that share the context's blocks, its units and its prefix.

    The first one is drawn as the text itself would go on; the others at `retry_temperature` at least.
    """
    drawing.sides = [_fork(sequence, drawing, number, memory_manager) for number in range(drawing.count)]
    return drawing.sides


def collect(sequence: Sequence) -> tuple[Wording, ...]:
    """What has been drawn for a sequence, which goes on; what it took is in its counters."""
    stats, drawing = sequence.stats, sequence.policy.drawing
    assert drawing is not None
    sequence.policy.drawing = None
    stats.passes += max(side.stats.passes for side in drawing.sides)
    stats.decode_s += max(side.stats.decode_s for side in drawing.sides)
    wordings = tuple(_wording(side, drawing.sentence, len(sequence.output_text)) for side in drawing.sides)
    stats.tokens_discarded += sum(len(wording.tokens) for wording in wordings)
    return wordings


def judge(
    sequence: Sequence,
    wordings: tuple[Wording, ...],
    verification: Worker | None,
    timeout: float,
    wants_answers: bool,
) -> None:
    """Has all wordings checked in one batch; those without a sentence ask for nothing.

    Raises ValueError without a verifier, or where the text waits for something else.
    """
    _expect_quiet(sequence)
    if verification is None:
        raise ValueError("Judge: there is no verifier")
    drawn = [wording for wording in wordings if wording.text]
    requests = [verification_request(sequence, wording.before, wording.text, wants_answers) for wording in drawn]
    sequence.policy.judged = wordings
    sequence.policy.judging = verification.submit(requests, timeout)


def verification_request(sequence: Sequence, before: str, sentence: str, wants_answers: bool) -> VerificationRequest:
    """What a verifier is asked of a sentence that stands in an answer behind the text before."""
    request = sequence.request
    parts = in_context(request.original.prefill, before, sentence)
    closed_world = request.original.closed_world
    return VerificationRequest(request.question, *parts, closed_world=closed_world, wants_answers=wants_answers)


def judged(sequence: Sequence) -> tuple[tuple[Wording, ...], tuple[VerificationResult, ...], Job]:
    """The wordings, what the check that is over has found of each, and this check; the sequence goes on."""
    state = sequence.policy
    wordings, job = state.judged, state.judging
    assert job is not None
    state.judged, state.judging = (), None
    return wordings, results_of(wordings, job), job


def results_of(wordings: abc.Sequence[Wording], job: Job) -> tuple[VerificationResult, ...]:
    """What a finished job found of each wording: nothing of those without a sentence, or if it failed."""
    results = iter(() if job.error else job.result)
    return tuple(next(results, VerificationResult()) if wording.text else VerificationResult() for wording in wordings)


def take(sequence: Sequence, index: int, wordings: abc.Sequence[Wording], chosen: int, job: Job) -> None:
    """Lets the text go on with one of the wordings; what the job found of it is told as of any check."""
    wording, results = wordings[chosen], results_of(wordings, job)
    _record(sequence, index, wordings, results, chosen)
    start = len(wording.before)
    end = start + len(wording.text)
    sequence.output_text.append_sentences(wording.tokens, [(start, end)] if wording.text else [])
    sequence.stats.tokens_discarded -= len(wording.tokens)
    sequence.end_text(stopped=wording.finish == "stop")
    if not wording.text:
        return
    progress = sequence.feedback.progress
    show(sequence)  # before its check is announced
    record_checking(sequence, index)
    chosen_job = replace(job, result=[results[chosen]], on_done=None)
    sequence.policy.checks.append(Check(chosen_job, (index,), True, progress.retrieved))
    progress.verified = index + 1


def _expect_quiet(sequence: Sequence) -> None:
    state = sequence.policy
    is_checked = all(check.is_over for check in state.checks)
    if not is_checked or state.retrieval is not None or state.drawing is not None or state.judging is not None:
        raise ValueError("Draw, Judge: something else is under way: Write until it is told of")


def _record(
    sequence: Sequence,
    index: int,
    wordings: abc.Sequence[Wording],
    results: abc.Sequence[VerificationResult],
    chosen: int,
) -> None:
    drawn = [
        {"text": wording.text, "verdict": result.verdict.value, "logprob": wording.mean_logprob}
        for wording, result in zip(wordings, results, strict=True)
    ]
    sequence.record("wordings", number=index + 1, wordings=drawn, chosen=chosen)


def _fork(sequence: Sequence, drawing: Drawing, number: int, memory_manager: MemoryManager) -> Sequence:
    settings, feedback = memory_manager.config, sequence.feedback
    side = Sequence(
        request=sequence.request,
        index=sequence.index,
        output_text=sequence.output_text.fork(),
        table=sequence.table.fork(),
        memory=WorkingMemory(settings.retrieval_units, settings.verification_units, settings.refresh == "lowest_score"),
        feedback=FeedbackState(
            rewinds=feedback.rewinds, retry_sentence=drawing.sentence if number else feedback.retry_sentence
        ),
        schedule=ScheduleState(is_started=True, is_admitted=True),
        arrived=sequence.arrived,
        wording_task=WordingTask(sequence, number, drawing.sentence),
    )
    memory_manager.fork(sequence, side)
    return side


def _wording(side: Sequence, sentence: int, kept: int) -> Wording:
    output = side.output_text
    tokens = tuple(output.tokens[kept:])
    # It also ends once its sentence is complete: the text goes on then.
    ended = side.finish if side.finish == "stop" or len(output) >= side.request.max_tokens else None
    if sentence >= len(output.sentences):
        return Wording(output.text, "", tokens, ended)
    span = output.sentences[sentence]
    return Wording(output.text[: span.start], output.text_of(span), tokens, ended)
