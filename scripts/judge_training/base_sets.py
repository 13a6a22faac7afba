"""The sets that the base judge is measured on, and its figures on them.

The changed sentences of SQuAD come from rules of this file alone, which the training does not use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from judge_training.figures import calibration_half, fever_mix
from judge_training.metrics import (
    Calibration,
    balanced_accuracy,
    calibrate,
    calibration_error,
    macro_f1,
    ranking,
)
from judge_training.pairs import Label, Pair, clean, sentences_of, share_of
from judge_training.passages import fool_me_twice_in_training, wice_in_training
from judge_training.sources import read_fever, read_fool_me_twice, read_rows, read_symmetric

_WICE_WINDOW = 900  # Characters.
_DIGITS = re.compile(r"\d+")
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}(?: [A-Z][a-z]+)*")
_VERB = re.compile(r"\b(?:is|was|are|were|had|has|can|will|would|could)\b(?! not)")


@dataclass(frozen=True, slots=True)
class Row:
    """A pair of a set; kind: what was changed in its claim; item: pairs of one number are one claim's windows."""

    name: str
    pair: Pair
    kind: str = ""
    item: int = 0


def is_tuning(article: str) -> bool:
    """Whether an article of SQuAD calibrates; the others are reported."""
    return share_of(article, "verdicts") < 0.5


def read_rows_of_all(data: Path, scale: float = 1.0) -> list[Row]:
    """Every row of every set, or a share of each."""
    fever = read_fever(data).test
    mix = fever_mix(fever)
    rows = [Row("fever", pair) for pair in fever]
    rows += [Row("fever apart", pair) for pair in mix[len(fever) :]]
    rows += [Row("symmetric", pair) for pair in read_symmetric(data)]
    for fold, pair, _ in read_fool_me_twice(data):
        if not fool_me_twice_in_training(fold):
            rows.append(Row("fool me twice", pair))
    rows += [*_wice(data), *_squad(data)]
    if scale < 1:
        rows = [row for row in rows if share_of(f"{row.name}/{row.pair.claim}", "thin") < scale]
    return rows


def shown(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """(evidence, claim) per row, as the verifier shows them."""
    return [((titled := row.pair.under_title()).evidence, titled.claim) for row in rows]


def fit(rows: Sequence[Row], logits: NDArray[np.float32]) -> Calibration:
    """Temperature and biases from half of the FEVER mix and the tuned articles of SQuAD."""
    halves = calibration_half([row.pair for row in rows])[0]
    wanted = {id(pair) for pair in halves}
    chosen = [
        number
        for number, row in enumerate(rows)
        if row.name == "squad tuned" or (row.name.startswith("fever") and id(row.pair) in wanted)
    ]
    return calibrate(logits[chosen], np.array([int(rows[number].pair.label) for number in chosen]))


def figures_of(rows: Sequence[Row], logits: NDArray[np.float32], calibration: Calibration) -> dict[str, float]:
    """Two-way figures per set, WiCE's ranking of supported claims, SQuAD's shares of verdicts per kind."""
    probabilities = calibration.probabilities(logits)
    labels = np.array([int(row.pair.label) for row in rows])
    names = np.array([row.name for row in rows])
    figures: dict[str, float] = {}
    for name in ("fever", "symmetric", "fool me twice"):
        own = names == name
        figures[f"{name} balanced accuracy"] = balanced_accuracy(probabilities[own], labels[own])
        figures[f"{name} AUC"] = two_way(probabilities[own], labels[own])
    own = np.char.startswith(names, "fever")
    figures["fever mix macro-F1"] = macro_f1(probabilities[own], labels[own])
    figures["fever mix calibration error"] = calibration_error(probabilities[own], labels[own])
    figures |= _wice_figures(rows, names, probabilities, labels)
    for name in ("squad tuned", "squad"):
        own = names == name
        figures[f"{name} calibration error"] = calibration_error(probabilities[own], labels[own])
        for kind in sorted({row.kind for row in rows if row.name == name}):
            chosen = own & np.array([row.kind == kind for row in rows])
            guesses = probabilities[chosen].argmax(1)
            figures[f"{name} {kind}: count"] = int(chosen.sum())
            figures[f"{name} {kind}: supported"] = float(np.mean(guesses == Label.SUPPORTED))
            figures[f"{name} {kind}: refuted"] = float(np.mean(guesses == Label.REFUTED))
    return {key: round(value, 4) for key, value in figures.items()}


def two_way(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """Area under the curve of supported against refuted, by the share of the one in both."""
    return ranking(probabilities[:, 0] / probabilities[:, :2].sum(1), labels == Label.SUPPORTED)


def _wice_figures(
    rows: Sequence[Row], names: NDArray[np.str_], probabilities: NDArray[np.float32], labels: NDArray[np.integer]
) -> dict[str, float]:
    """Supported against all else: by the best window of the page, and by the annotated sentences."""
    figures: dict[str, float] = {}
    for name in ("wice page", "wice sentences"):
        best: dict[int, tuple[float, bool]] = {}
        for number in np.flatnonzero(names == name):
            score = max(best.get(rows[number].item, (0.0, False))[0], float(probabilities[number, 0]))
            best[rows[number].item] = (score, bool(labels[number] == Label.SUPPORTED))
        scores, whole = np.array([s for s, _ in best.values()]), np.array([w for _, w in best.values()])
        figures[f"{name} AUC"] = ranking(scores, whole)
    return figures


def _wice(data: Path) -> Iterator[Row]:
    """Held-back claims beside every window of their page, and beside their annotated sentences."""
    for item, row in enumerate(read_rows(data / "wice" / "claims.jsonl")):
        sentences = [clean(text) for text in row["evidence"]]
        title = sentences[0].removeprefix("(meta data) TITLE: ") if sentences[0].startswith("(meta") else ""
        if wice_in_training("wice/" + title):
            continue
        claim = clean(row["claim"])
        label = Label.SUPPORTED if row["label"] == "supported" else Label.INCONCLUSIVE
        for text in _windows(sentences[1:]):
            yield Row("wice page", Pair(text, claim, label, title), item=item)
        chosen = [index for group in row["supporting_sentences"][:1] for index in group] or range(1, 5)
        told = " ".join(sentences[index] for index in sorted(chosen) if index < len(sentences))
        yield Row("wice sentences", Pair(told[:1500], claim, label, title), item=item)


def _windows(sentences: Sequence[str]) -> Iterator[str]:
    """Windows of consecutive sentences that overlap by one."""
    held: list[str] = []
    for text in sentences:
        if held and sum(map(len, held)) + len(text) > _WICE_WINDOW:
            yield " ".join(held)
            held = held[-1:] if len(held[-1]) < _WICE_WINDOW // 2 else []
        held.append(text[:_WICE_WINDOW])
    if held:
        yield " ".join(held)


def _squad(data: Path) -> Iterator[Row]:
    """Sentences against their own paragraph, as they are and changed, and against the next paragraph."""
    rng = Random("squad")
    rows = read_rows(data / "squad2" / "passages.jsonl")
    for number, row in enumerate(rows):
        article = [other for other in rows if other["title"] == row["title"]]
        following = next((other for other in rows[number + 1 :] if other in article), article[0])
        name = "squad tuned" if is_tuning(row["title"]) else "squad"
        names = [match[0] for other in article for match in _CAPITAL.finditer(other["text"])]
        for sentence in sentences_of(row["text"]):
            if not 6 <= len(sentence.split()) <= 60:
                continue
            yield Row(name, Pair(row["text"], sentence, Label.SUPPORTED, row["title"]), "true")
            yield Row(name, Pair(following["text"], sentence, Label.INCONCLUSIVE, following["title"]), "elsewhere")
            for kind, changed in _changed(rng, sentence, names):
                yield Row(name, Pair(row["text"], changed, Label.REFUTED, row["title"]), kind)


def _changed(rng: Random, sentence: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(kind, sentence) with its first number, a name or its first verb changed."""
    if match := _DIGITS.search(sentence):
        number = str(int(match[0]) + rng.choice((-7, -3, -1, 1, 2, 4, 9, 30)))
        yield "number", sentence[: match.start()] + number.lstrip("-") + sentence[match.end() :]
    if found := list(_CAPITAL.finditer(sentence)):
        match = rng.choice(found)
        others = [name for name in names if name not in sentence]
        if others:
            yield "name", sentence[: match.start()] + rng.choice(others) + sentence[match.end() :]
    if match := _VERB.search(sentence):
        yield "negation", sentence[: match.end()] + " not" + sentence[match.end() :]
