"""The public texts that `benchmarks.verdicts` is made of, and their halves for tuning and for reporting.

Articles of squad2 and claims of FEVER fall into halves by hashes. Paragraphs that XQuAD has too are never checked: the
built-in judge was trained on their text. FEVER is what that training held back. "fresh" is a second set for reporting:
biographies by ChatGPT of people that no training saw, FEVER's claims that the half for reporting leaves over, and
questions about XQuAD's other articles (the judge was trained on their text, not on the questions).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.common import ROOT
from benchmarks.verdicts_changes import Source, source_of
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage

sys.path.insert(0, str(ROOT / "scripts"))

from judge_training.figures import calibration_half
from judge_training.pairs import Label, Pair, share_of
from judge_training.sources import BIOS_IN_TRAINING, read_fever

__all__ = [
    "Half",
    "Label",
    "Told",
    "fever_half",
    "read_articles",
    "read_documents",
    "read_evidence",
    "read_fever",
    "read_questions",
    "share_of",
]

Half = Literal["tune", "report", "fresh"]

_WORDS = range(7, 46)  # of a sentence that is checked


@dataclass(frozen=True, slots=True)
class Told:
    """A true sentence where it stands: its passage, the text before it there, and what may be borrowed for a change."""

    passage: Passage
    preceding: str
    sentence: str
    source: Source


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _half_of(title: str) -> Half:
    """The half that an article of squad2 belongs to."""
    return "tune" if share_of(title, "verdicts") < 0.5 else "report"


def fever_half(pairs: Sequence[Pair], half: Half) -> list[Pair]:
    """The half of held-back FEVER; that for tuning is the one that the judge's probabilities were calibrated on."""
    tuned, reported = calibration_half(pairs)
    return list(tuned if half == "tune" else reported)


def read_articles(data: Path, half: Half) -> tuple[list[Passage], list[Told]]:
    """All passages of squad2 and the sentences of its articles of one half; or biographies."""
    passages = _read_biographies(data) if half == "fresh" else _read_squad(data)
    seen = {passage.text for passage in _read_xquad(data)}
    wanted = [p for p in passages if half in ("fresh", _half_of(p.title))]
    sources = {
        title: source_of([sentence for p in wanted if p.title == title for _, sentence in _sentences(p.text)])
        for title in dict.fromkeys(p.title for p in wanted)
    }
    told = [
        Told(passage, passage.text[:start], sentence, sources[passage.title])
        for passage in wanted
        if passage.text not in seen
        for start, sentence in _sentences(passage.text)
    ]
    return passages, told


def read_evidence(data: Path, half: Half) -> tuple[list[Passage], list[Told]]:
    """FEVER's held-back evidence as passages without titles, and its opening sentences; none of it is fresh."""
    if half == "fresh":
        return [], []
    texts = list(dict.fromkeys(pair.evidence for pair in fever_half(read_fever(data).test, half)))
    passages = [Passage(f"fever {number}", text) for number, text in enumerate(texts)]
    source = source_of([sentence for text in texts for _, sentence in _sentences(text)])
    opening = {
        sentence: Told(passage, "", sentence, source)
        for passage in passages
        for start, sentence in _sentences(passage.text)
        if start == 0
    }
    return passages, list(opening.values())


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """(start, sentence) of those that state something in full."""
    for start, end in SentenceSplitter().split(text):
        sentence = text[start:end]
        if len(sentence.split()) in _WORDS and sentence[0].isupper() and sentence[-1] == ".":
            yield start, sentence


def read_documents(data: Path, half: Half, words: int) -> list[list[Passage]]:
    """Paragraphs of one article after another, at least `words` words of it together as far as it goes."""
    if half == "fresh":
        known = {passage.title for passage in _read_squad(data)}
        passages = [passage for passage in _read_xquad(data) if passage.title not in known]
    else:
        passages = [passage for passage in _read_squad(data) if _half_of(passage.title) == half]
    documents: list[list[Passage]] = []
    title, length = "", 0
    for passage in passages:
        if passage.title != title or length >= words:
            documents.append([])
            title, length = passage.title, 0
        documents[-1].append(passage)
        length += len(passage.text.split())
    return documents


def read_questions(data: Path) -> Iterator[tuple[str, str, str]]:
    """(passage's id, question, answer) of squad2 and XQuAD, where there is an answer."""
    for row in rows_of(data / "squad2" / "questions.jsonl"):
        if row["answers"]:
            yield row["passage"], row["question"], row["answers"][0]
    for number, (_, paragraph) in enumerate(_xquad(data)):
        for asked in paragraph["qas"]:
            yield f"xquad {number}", asked["question"], asked["answers"][0]["text"]


def _read_squad(data: Path) -> list[Passage]:
    """The paragraphs of squad2 as passages, each its own source: "Wikipedia" would make all of them one witness."""
    return [Passage(row["id"], row["text"], row["title"]) for row in rows_of(data / "squad2" / "passages.jsonl")]


def _read_xquad(data: Path) -> list[Passage]:
    paragraphs = enumerate(_xquad(data))
    return [Passage(f"xquad {number}", paragraph["context"], title) for number, (title, paragraph) in paragraphs]


def _xquad(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(title, paragraph) of XQuAD."""
    document = json.loads((data / "xquad_en" / "xquad.en.json").read_text(encoding="utf-8"))
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            yield article["title"].replace("_", " "), paragraph


def _read_biographies(data: Path) -> list[Passage]:
    """What FActScore had ChatGPT write of people that no training saw; without refusals."""
    rows = [row for row in rows_of(data / "factscore" / "chatgpt.jsonl") if row["annotations"]]
    unseen = [row for row in rows if share_of("bio/" + row["topic"]) >= BIOS_IN_TRAINING]
    return [Passage(row["topic"], row["output"], row["topic"]) for row in unseen]
