"""Decoding policies: when to retrieve, with which query, and which sentences to check.

A further policy is a further class, here or in a plugin: the loop does not change.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ewe.config import FeedbackConfig, Trigger
from ewe.registry import POLICIES
from ewe.text.search_text import subject_of

if TYPE_CHECKING:
    from ewe.engine.output_text import OutputText, Span


@dataclass(frozen=True, slots=True)
class View:
    """What a policy sees when it looks.

    prompt: the sequence's question. retrieved, verified: how many sentences earlier looks have dealt with; finished:
    whether the text has ended; rewritten: the starts of the sentences that have been written before, in code points.
    is_small_talk: whether the prompt names nothing that could be looked up.
    """

    prompt: str
    output_text: OutputText
    retrieved: int
    verified: int
    finished: bool
    rewritten: Container[int] = ()
    is_small_talk: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now.

    query: what to retrieve with, if not empty. verify: indices of sentences to check. rewrite: index of the sentence to
    write again under what the retrieval brings, which replaces the memory. retrieved, verified: how many sentences
    count as dealt with from now on (None: as before).
    """

    query: str = ""
    verify: tuple[int, ...] = ()
    rewrite: int | None = None
    retrieved: int | None = None
    verified: int | None = None


class Policy(Protocol):
    """When to pause. `retrieves`, `verifies` and `rewrites` say what it can ever ask for.

    reads_in_prompt: whether what the question brings may stand in the prompt, where units are for what comes later.
    """

    retrieves: bool
    verifies: bool
    rewrites: bool
    needs_entropy: bool
    reads_in_prompt: bool

    def is_due(self, num_tokens: int) -> bool:
        """Whether to look after this many tokens; sentences are searched for only then."""

    def look(self, view: View) -> Decision:
        """What to do, given the sentences that have been completed."""


class PlainPolicy:
    """No retrieval, no checks: plain decoding, under `documents` if there are any."""

    retrieves = verifies = rewrites = needs_entropy = reads_in_prompt = False

    def is_due(self, num_tokens: int) -> bool:
        """Never."""
        return False

    def look(self, view: View) -> Decision:
        """Nothing to do."""
        return Decision()


class RAGPolicy(PlainPolicy):
    """Retrieves once, with the prompt, and never pauses again: to fill the memory, or for NEST to copy from."""

    retrieves = True


class DRAGINPolicy(PlainPolicy):
    """What its pipeline reads of texts that are decoded plainly."""

    needs_entropy = True


class EWEPolicy:
    """Pauses at intervals of generated tokens if a sentence has been completed (ewe.txt 3.1 and appendix B)."""

    verifies = True  # if there is a verifier
    reads_in_prompt = True

    def __init__(self, config: FeedbackConfig, retrieves: bool, verifies: bool) -> None:
        self._config = config
        self.retrieves = retrieves
        self.verifies = self.rewrites = verifies
        self.needs_entropy = "entropy" in (config.retrieve_when, config.verify_when)

    def is_due(self, num_tokens: int) -> bool:
        """At every multiple of the retrieval and of the verification interval."""
        return self._retrieval_due(num_tokens) or self._verification_due(num_tokens)

    def look(self, view: View) -> Decision:
        """Retrieves with the question and the new sentences; checks the new sentences."""
        config, draft = self._config, view.output_text
        spans = draft.sentences
        query, retrieved = "", None
        if self._retrieval_due(len(draft)) and not view.finished:
            thresholds = config.retrieve_when, config.retrieve_entropy, config.retrieve_min_prob
            new = [span for span in spans[view.retrieved :] if _triggers(draft, span, *thresholds)]
            is_due = new and not view.is_small_talk
            query = " ".join([subject_of(view.prompt), *map(draft.text_of, new)]) if is_due else ""
            retrieved = len(spans)
        verify: tuple[int, ...] = ()
        verified = None
        if self._verification_due(len(draft)) or (self.verifies and view.finished):
            thresholds = config.verify_when, config.verify_entropy, config.verify_min_prob
            unseen = range(view.verified, len(spans))
            verify = tuple(index for index in unseen if _triggers(draft, spans[index], *thresholds))
            verified = len(spans)
        return Decision(query, verify, retrieved=retrieved, verified=verified)

    def _retrieval_due(self, num_tokens: int) -> bool:
        return self.retrieves and num_tokens % self._config.retrieve_every == 0

    def _verification_due(self, num_tokens: int) -> bool:
        return self.verifies and num_tokens % self._config.verify_every == 0


class FLAREPolicy:
    """Looks ahead one sentence; an unsure one is written again under passages retrieved with it (FLARE, direct form).

    A sentence is unsure if a token is less likely than `flare_min_prob`; the query leaves out the tokens at or under
    `flare_mask_prob`. What was retrieved replaces the memory, and the second writing is kept.
    """

    retrieves = rewrites = True
    verifies = needs_entropy = reads_in_prompt = False

    def __init__(self, config: FeedbackConfig) -> None:
        self._config = config

    def is_due(self, num_tokens: int) -> bool:
        """After every token."""
        return True

    def look(self, view: View) -> Decision:
        """Retrieves and rewrites once if the new sentence is unsure."""
        spans = view.output_text.sentences
        for index in range(view.retrieved, len(spans)):
            unsure = view.output_text.min_prob(spans[index]) < self._config.flare_min_prob
            if unsure and spans[index].start not in view.rewritten:
                return Decision(query=self._query(view, spans[index]), rewrite=index, retrieved=index)
        return Decision(retrieved=len(spans))

    def _query(self, view: View, span: Span) -> str:
        threshold = math.log(max(self._config.flare_mask_prob, 1e-9))
        words = view.output_text.text_without(span, lambda token: token.logprob <= threshold)
        return words or view.prompt


def _triggers(draft: OutputText, span: Span, when: Trigger, entropy: float, min_prob: float) -> bool:
    """Whether a sentence is to be dealt with; entropy, min_prob: from where on, where that is what counts."""
    if when == "interval":
        return True
    return draft.mean_entropy(span) > entropy if when == "entropy" else draft.min_prob(span) < min_prob


def make_policy(name: str, config: FeedbackConfig, has_retriever: bool, has_verifier: bool) -> Policy:
    """The policy of that name; without the components that it asks for it degenerates to a simpler one."""
    if name not in POLICIES or not (has_retriever or has_verifier):
        return PlainPolicy()
    policy: Policy = POLICIES.make(name, config=config, retrieves=has_retriever, verifies=has_verifier)
    return PlainPolicy() if policy.retrieves and not has_retriever else policy
