"""The public texts that `benchmarks.verdicts` is made of, and their halves for tuning and for reporting.

Articles of squad2 and claims of FEVER fall into halves by hashes. Paragraphs that XQuAD has too are never checked: the
built-in judge was trained on their text. FEVER is what that training held back.
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
from judge_training.sources import read_fever

__all__ = [
    "Half",
    "Label",
    "Told",
    "fever_half",
    "is_tuning",
    "read_articles",
    "read_evidence",
    "read_fever",
    "read_squad",
]
__all__ += ["rows_of", "share_of"]

Half = Literal["tune", "report"]

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


def is_tuning(name: str) -> bool:
    """Whether an article, or a text, belongs to the half for tuning."""
    return float(share_of(name, "verdicts")) < 0.5


def fever_half(pairs: Sequence[Pair], half: Half) -> list[Pair]:
    """The half of held-back FEVER; that for tuning is the one that the judge's probabilities were calibrated on."""
    tuned, reported = calibration_half(pairs)
    return list(tuned if half == "tune" else reported)


def read_articles(data: Path, half: Half) -> tuple[list[Passage], list[Told]]:
    """All passages of squad2, and the sentences of its articles of one half."""
    passages = read_squad(data)
    seen = _xquad_texts(data)
    wanted = [p for p in passages if is_tuning(p.title) == (half == "tune")]
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
    """FEVER's held-back evidence as passages without titles, and its opening sentences."""
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


def read_squad(data: Path) -> list[Passage]:
    """The paragraphs of squad2 as passages; each its own source."""
    return [Passage(row["id"], row["text"], row["title"], row["source"]) for row in _with_own_source(data)]


def _with_own_source(data: Path) -> Iterator[dict[str, Any]]:
    """Rows of squad2, every paragraph a source of its own: "Wikipedia" would make all of them one witness."""
    for row in rows_of(data / "squad2" / "passages.jsonl"):
        yield row | {"source": ""}


def _xquad_texts(data: Path) -> set[str]:
    document = json.loads((data / "xquad_en" / "xquad.en.json").read_text(encoding="utf-8"))
    return {paragraph["context"] for article in document["data"] for paragraph in article["paragraphs"]}
