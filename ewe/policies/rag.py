"""Retrieval-augmented generation: one retrieval, with the question, fills the memory."""

from ewe.config import FeedbackConfig
from ewe.engine.effects import Remember, Retrieve, Steps, Write, policy
from ewe.engine.policy_answer import Answer
from ewe.text.search_text import subject_of


@policy(retrieves=True, needs_retriever=True)
def rag(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Retrieves once and never pauses."""
    yield from remember_question(answer)
    yield Write()


def remember_question(answer: Answer, in_prompt: bool = False) -> Steps:
    """Retrieves with the question, before anything is computed; not for small talk, which passages distract.

    in_prompt: whether what is found stands in the prompt, if that has a place for it; then only what is about the
    question does, unless nothing is.
    """
    if not answer.is_first or answer.is_small_talk:
        return
    places = answer.prompt_places if in_prompt else None
    yield Retrieve(subject_of(answer.question), places)
    retrieved = yield Write()
    hits = retrieved.hits
    if places is not None:
        hits = tuple(hit for hit in hits if answer.bears_on(hit.passage)) or hits
    yield Remember(hits, in_prompt=places is not None)
