"""Claims beside what the verifier would show a judge for them: passages found among all, cut to the judge's window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage
from ewe.verification.claim_verifier import EVIDENCE_TOP_K
from ewe.verification.excerpts import ExcerptSelector
from judge_training.claim_corpus import Claim, Pack, Text
from judge_training.pairs import Label

_APART = 0.1  # Share of the decided claims whose own passages are taken away.
_SAYS_IT = 0.45  # With a sentence that has this share of its words, a claim may still be decided.


class RetrievedEvidence:
    """Finds passages for claims as the verifier does: by BM25, then the sentences that speak most of the claim."""

    def __init__(self, texts: Sequence[Text], max_characters: int) -> None:
        passages = [Passage(text.id, text.text, title=text.title, source=text.title) for text in texts]
        self._retriever = BM25Retriever(passages)
        self._selector = ExcerptSelector()
        self._max_characters = max_characters

    def pack(self, rng: Random, claim: Claim) -> Pack | None:
        """The claim with what is found for it; None where its label may not hold for that.

        A few claims lose their own passages, and are open then if nothing else has most of their words.
        """
        is_decided = claim.label is not Label.INCONCLUSIVE
        is_apart = is_decided and rng.random() < _APART
        found = [one.passage for one in self._retriever.retrieve([claim.text], EVIDENCE_TOP_K + len(claim.home))[0]]
        if is_apart:
            found = [one for one in found if one.id not in claim.home]
        found = found[:EVIDENCE_TOP_K]
        excerpts = self._selector.select(claim.text, found, self._max_characters)
        ranked = sorted(excerpts, key=lambda one: -one.share)
        shown = {one.passage.id for one in ranked}
        if not ranked or (is_apart and ranked[0].share >= _SAYS_IT):
            return None
        if is_decided and not is_apart and not set(claim.home) <= shown:
            return None
        texts = tuple(Text(one.passage.id, one.passage.title, one.text) for one in ranked)
        label = Label.INCONCLUSIVE if is_apart else claim.label
        return Pack(texts, (replace(claim, label=label, source="retrieved"),))
