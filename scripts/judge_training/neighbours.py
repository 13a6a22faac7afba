"""Passages that a search finds for a claim and that do not settle it: neighbours from other pages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import bm25s

from judge_training.pairs import Label, Pair, sentences_of
from judge_training.swaps import contains, find_values

_RANKS = 12


def irrelevant_pairs(rng: Random, pairs: Sequence[Pair], first: bool) -> list[Pair]:
    """Each claim beside a sentence of another group's evidence that BM25 ranks high for it: inconclusive.

    first: the best-ranked such sentence (a test), else one of the first ranks (training). A sentence that has the
    name with which the claim begins is passed over: it may settle the claim after all. Claims for which none of the
    first ranks will do are left out.
    """
    pool = {sentence: pair for pair in pairs for sentence in sentences_of(pair.evidence) if len(sentence) > 30}
    texts = list(pool)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    claims = bm25s.tokenize([pair.claim for pair in pairs], stopwords="en", show_progress=False)
    found, _ = index.retrieve(claims, k=min(_RANKS, len(texts)), show_progress=False, n_threads=1)
    made = []
    for pair, ranked in zip(pairs, found, strict=True):
        values = find_values(pair.claim)
        name = values[0].text if values and values[0].kind == "name" and values[0].start <= 4 else ""
        fitting = [
            text
            for text in (texts[number] for number in ranked)
            if pool[text].group != pair.group and not (name and contains(text, name))
        ]
        if fitting:
            evidence = fitting[0] if first else rng.choice(fitting)
            made.append(Pair(evidence, pair.claim, Label.INCONCLUSIVE, pool[evidence].title, pair.group))
    return made
