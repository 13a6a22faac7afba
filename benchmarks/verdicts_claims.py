"""Claims in words of their own, and what models wrote: parts of `benchmarks.verdicts` that were labelled by reading."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.verdicts_sets import Case, Part, spread
from benchmarks.verdicts_texts import Half
from ewe.types import Passage, Verdict, VerificationRequest

ANSWERS = Path(__file__).parent / "verdicts_answers.jsonl"
"""Answers to the prompts of ../shared/data/wikitext (and, for tuning, wikitext_training), every sentence labelled."""

OMISSIONS = Path(__file__).parent / "verdicts_omissions.jsonl"
"""Sentences, and what is left of each when words are left out: harmless ones (true), or not (false)."""

NEAR = Path(__file__).parent / "verdicts_near.jsonl"
"""Passages, and claims close to their words: values in another form, easy steps, roles exchanged; by two writers."""

TOLD = Path(__file__).parent / "verdicts_told.jsonl"
"""Invented articles, and answers about them with the mistakes of language models; by two writers, one for each half."""

_ARTICLES = {"tune": "wikitext_training", "report": "wikitext"}
_KINDS = {"supported": "true", "refuted": "false", "inconclusive": "open", "not_a_claim": "no claim"}
_VERDICTS = {
    "supported": Verdict.SUPPORTED,
    "refuted": Verdict.REFUTED,
    "inconclusive": Verdict.INCONCLUSIVE,
    "not_a_claim": Verdict.NOT_CHECKED,
}
_TUNED = 300  # Claims of the training half that tuning looks at.


def claims(data: Path, half: Half, limit: int) -> Part:
    """Claims written by reading: true, false, and left open by their paragraph; whole articles are the datastore.

    The half for tuning is of the articles that training keeps apart.
    """
    rows = _rows(data / "written_claims" / ("report.jsonl" if half == "report" else "train.jsonl"))
    passages = _articles(data, half)
    if half == "tune":
        from judge_training.claim_corpus import is_held_out

        known = {passage.id for passage in passages}
        rows = [row for row in rows if row["passage"] in known and is_held_out(row["title"])][:_TUNED]
    cases = [_alone(row) for row in rows]
    return Part(passages, spread(cases, limit) if half != "fresh" else [])


def answers(data: Path, half: Half, limit: int) -> Part:
    """Sentences of answers by small models, each with the text before it; whole articles are the datastore."""
    rows = [row for row in _rows(ANSWERS) if row["half"] == half]
    labelled = [(row["prompt"], [(one["label"], one["text"]) for one in row["sentences"]]) for row in rows]
    cases = [case for answer in labelled for case in _in_order(*answer)]
    return Part(_articles(data, half), spread(cases, limit))


def omissions(data: Path, half: Half, limit: int) -> Part:
    """Claims that leave out words of a sentence: "the fourth largest" as "the largest", or nothing that matters."""
    rows = [row for row in _rows(OMISSIONS) if row["half"] == half]
    passages = [Passage(str(number), row["evidence"]) for number, row in enumerate(rows)]
    return Part(passages, spread([_alone(row) for row in rows], limit))


def near(data: Path, half: Half, limit: int) -> Part:
    """What a model may write from a passage: its values in another form, its words turned round, or an easy step on."""
    rows = [row for row in _rows(NEAR) if row["half"] == half]
    places = {text: str(number) for number, text in enumerate(dict.fromkeys(row["passage"] for row in rows))}
    titles = {row["passage"]: row["title"] for row in rows}
    passages = [Passage(place, text, title=titles[text], source=titles[text]) for text, place in places.items()]
    return Part(passages, spread([_alone(row) for row in rows], limit))


def told(data: Path, half: Half, limit: int) -> Part:
    """Sentences of answers about invented articles, most in words of their own, each with the text before it."""
    rows = [row for row in _rows(TOLD) if row["half"] == half]
    cases = [case for row in rows for case in _in_order(row["question"], row["sentences"])]
    passages = [
        Passage(f"{row['title']} {number}", text, title=row["title"], source=row["title"])
        for row in rows
        for number, text in enumerate(row["paragraphs"])
    ]
    return Part(passages, spread(cases, limit))


def _in_order(question: str, sentences: Sequence[tuple[str, str]]) -> list[Case]:
    """The sentences of an answer, (label, text), each with the text before it."""
    texts = [text for _, text in sentences]
    return [
        Case(_KINDS[label], VerificationRequest(question, " ".join(texts[:number]), text), _VERDICTS[label])
        for number, (label, text) in enumerate(sentences)
    ]


def _alone(row: Mapping[str, Any]) -> Case:
    """A claim that follows nothing."""
    return Case(_KINDS[row["label"]], VerificationRequest("", "", row["claim"]), _VERDICTS[row["label"]])


def _articles(data: Path, half: Half) -> list[Passage]:
    if half not in _ARTICLES:
        return []
    rows = _rows(data / _ARTICLES[half] / "passages.jsonl")
    return [Passage(row["id"], row["text"], title=row["title"], source=row["title"]) for row in rows]


def _rows(path: Path) -> list[Mapping[str, Any]]:
    return list(_read(path.read_text(encoding="utf-8").splitlines()))


def _read(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    return (json.loads(line) for line in lines if line)
