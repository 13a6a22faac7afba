"""Pauses: what a policy has asked for since it last wrote goes to the retriever and the verifier."""

import time
from functools import partial

from ewe.config import FeedbackConfig
from ewe.engine.effects import Retrieve, Verify
from ewe.engine.output import record_checking
from ewe.engine.sentence_checks import Check
from ewe.engine.sequence import Sequence
from ewe.engine.workers import Worker
from ewe.types import Query, VerificationRequest


def begin_pause(
    sequence: Sequence, config: FeedbackConfig, retrieval: Worker | None, verification: Worker | None
) -> None:
    """Submits what a policy has asked for since it last wrote: one pause, once there is a text to pause.

    Raises ValueError for what nobody can answer.
    """
    asked, sequence.feedback.asked = sequence.feedback.asked, []
    if asked and sequence.schedule.is_admitted:
        sequence.feedback.paused_at = time.monotonic()
        names = ["retrieval" if isinstance(effect, Retrieve) else "verification" for effect in asked]
        sequence.record("pause", **{"for": names})
    for effect in asked:
        if isinstance(effect, Retrieve):
            _retrieve(sequence, effect, config, retrieval)
        else:
            _verify(sequence, effect, config, verification)


def _retrieve(sequence: Sequence, effect: Retrieve, config: FeedbackConfig, retrieval: Worker | None) -> None:
    if retrieval is None or sequence.feedback.retrieval is not None:
        raise ValueError("Retrieve: there is no retriever, or one retrieval is under way")
    sequence.record("retrieving", query=effect.query)
    query = Query(effect.query, sequence.request.memory, effect.top_k)
    sequence.feedback.retrieval = retrieval.submit(query, config.timeout)


def _verify(sequence: Sequence, effect: Verify, config: FeedbackConfig, verification: Worker | None) -> None:
    if verification is None:
        raise ValueError("Verify: there is no verifier")
    text, spans, state = sequence.output_text.text, sequence.output_text.sentences, sequence.feedback
    asked = partial(VerificationRequest, closed_world=sequence.request.asked.closed_world)
    requests = []
    for index in effect.sentences:
        start, end = spans[index].start, spans[index].end
        requests.append(asked(sequence.request.question, text[:start], text[start:end]))
        record_checking(sequence, index)
    job = verification.submit(requests, config.timeout)
    state.checks.append(Check(job, effect.sentences, effect.wait, state.progress.retrieved))
