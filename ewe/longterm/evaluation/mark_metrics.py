"""MARK's scores of an answer against a reference: ICS, KPCS, AICS and the study of alpha (the MARK paper, 2.2)."""

from collections.abc import Callable, Sequence

import numpy as np

from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words

ALPHA = 0.1
"""The alpha that the paper's experiment 1 chose."""
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5)
SIMILAR = 0.6  # "highly similar"; the paper gives no threshold
_MOST_WORDS = 3  # of a key point
_FILLERS = frozenset(
    words(
        """a an the this that these those it its he she they them his her their there here of in on at by for to from
        with as into over under than and or but if so not no is are was were be been being has have had do does did can
        could may might must should will would which who whom what when where how why also most more such other only
        very all any both each some due"""
    )
)


Similarity = Callable[[Sequence[str]], np.ndarray]
"""Texts to their cosines in [-1, 1], float [n, n]."""


def sentences(text: str) -> list[str]:
    """The sentences of a text that hold a word."""
    parts = [text[start:end] for start, end in SentenceSplitter().split(text)]
    return [one for one in parts if words(one)]


def coverage_scores(expected: str, generated: str, similarity: Similarity) -> tuple[float, float]:
    """ICS as printed, and ours (the MARK paper, 2.2.1); 0 where either text holds no sentence.

    As printed: pairs of highly similar sentences over the number of generated ones, above 1 where sentences repeat.
    Ours, in [0, 1]: the share of the expected sentences to which a generated one is highly similar.
    """
    required, given = sentences(expected), sentences(generated)
    if not required or not given:
        return 0.0, 0.0
    cosines = np.asarray(similarity([*required, *given]))
    similar = cosines[: len(required), len(required) :] >= SIMILAR
    return float(similar.sum() / len(given)), float(similar.any(axis=1).mean())


def key_points(text: str) -> list[str]:
    """The content words of a text in runs of at most three, each once: our stand-in for points that a model names."""
    points: dict[str, None] = {}
    for sentence in sentences(text):
        run: list[str] = []
        for word in [*words(sentence), "the"]:
            if word in _FILLERS or len(run) == _MOST_WORDS:
                if run:
                    points[" ".join(run)] = None
                run = [] if word in _FILLERS else [word]
            else:
                run.append(word)
    return list(points)


def key_point_coverage(expected: str, generated: str) -> float:
    """KPCS = N_CKP / N_ERKP, in [0, 1] (the MARK paper, 2.2.2): key points said in every word; 0 without any."""
    spoken = set(words(generated))
    points = key_points(expected)
    return sum(spoken.issuperset(point.split()) for point in points) / len(points) if points else 0.0


def information_capture(coverage: float, key: float, alpha: float = ALPHA) -> float:
    """AICS = alpha ICS + (1 - alpha) KPCS (the MARK paper, 2.2.3)."""
    return alpha * coverage + (1.0 - alpha) * key


def alpha_study(
    coverages: Sequence[float], keys: Sequence[float], right: Sequence[float]
) -> dict[float, tuple[float, float]]:
    """Per alpha the mean AICS of right and of wrong answers (figure 2); nan where there are none of a sort."""
    hits = np.asarray(right, dtype=bool)
    study = {}
    for alpha in ALPHAS:
        scores = alpha * np.asarray(coverages) + (1.0 - alpha) * np.asarray(keys)
        means = [float(scores[which].mean()) if which.any() else float("nan") for which in (hits, ~hits)]
        study[alpha] = (means[0], means[1])
    return study
