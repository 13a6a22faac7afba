"""FLARE, direct form (Jiang et al. 2023): look ahead one sentence; write it again under passages if it is unsure."""

import math

from ewe.config import FeedbackConfig
from ewe.engine.effects import Forget, Remember, Retrieve, Rewind, Steps, Write, policy
from ewe.engine.evidence.sentence_checks import SentenceState
from ewe.engine.policy_answer import Answer
from ewe.policies.rag import remember_question


@policy(retrieves=True, needs_retriever=True, rewrites=True)
def flare(answer: Answer, settings: FeedbackConfig) -> Steps:
    """A sentence is unsure if a token is less likely than `flare_min_prob`; its second writing is kept.

    What is retrieved replaces the memory.
    """
    yield from remember_question(answer)
    while True:
        yield Write(every=(1,))
        index = _first_unsure(answer, settings)
        if index is None:
            continue
        yield Retrieve(_query(answer, index, settings))
        retrieved = yield Write()
        if retrieved.error:
            _keep(answer, index, "the retrieval failed")
            continue
        answer.reject(index, SentenceState(reason="an unsure look-ahead"))
        yield Forget()
        yield Rewind(index, "unsure")
        yield Remember(retrieved.hits)


def _first_unsure(answer: Answer, settings: FeedbackConfig) -> int | None:
    """The first new sentence that is to be written again; those before it are kept."""
    for index in range(answer.progress.retrieved, len(answer.sentences)):
        is_unsure = answer.min_prob(index) < settings.flare_min_prob
        if is_unsure and not answer.attempts(index):
            return index
        _keep(answer, index, "no verifier")
    return None


def _keep(answer: Answer, index: int, reason: str) -> None:
    answer.settle(index, SentenceState(reason=reason))
    answer.progress.retrieved = index + 1


def _query(answer: Answer, index: int, settings: FeedbackConfig) -> str:
    """The sentence without its tokens at or under `flare_mask_prob`; the question if nothing is left."""
    threshold = math.log(max(settings.flare_mask_prob, 1e-9))
    words = answer.words_without(index, lambda token: token.logprob <= threshold)
    return words or answer.question
