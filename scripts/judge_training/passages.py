"""Running text under a title, and windows of it around one of its sentences.

Of WiCE and Fool-Me-Twice only the pages of the training part are read, of FActScore the people of the training half;
XQuAD is not read: its articles are those of SQuAD, on which the judge is measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from judge_training.pairs import clean, key_of, sentences_of, share_of
from judge_training.sources import BIOS_IN_TRAINING, FOLDS, Fever, read_rows
from judge_training.swaps import find_values

HELD_BACK_FOLD = 0
"""The fold of Fool-Me-Twice that is not trained on."""

Text = tuple[str, list[str]]
"""(title, sentences)."""

_LOWER_CASE_END = re.compile(r"(?<=[.?!]) (?=[a-z0-9\"(])")
_NO_PROSE = re.compile(r"\?|!|https?:|©|\b(?:[Cc]lick|[Ss]ubscribe|[Cc]ookies?|[Ll]og in|[Ss]ign up)\b|\|")
_WORDS = (5, 60)


def wice_in_training(group: str) -> bool:
    """Whether a page of WiCE is trained on; the other half is measured on."""
    return share_of(group, "wice half") < 0.5


def fool_me_twice_in_training(fold: int) -> bool:
    """Whether a fold of Fool-Me-Twice is trained on."""
    return fold != HELD_BACK_FOLD


@dataclass(frozen=True)
class Passages:
    """Texts by source, and where each sentence stands. sources: (share in a draw, texts)."""

    sources: Sequence[tuple[float, Sequence[Text]]]
    names: Sequence[str]

    @classmethod
    def read(cls, data: Path, fever: Fever) -> Passages:
        """Reads the texts under `data`; raises FileNotFoundError for a set that is missing."""
        pages = _wice(data)
        sources = [(0.2, _fever(fever)), (0.2, _fool_me_twice(data)), (0.4, pages), (0.12, _bios(data))]
        names = _names([sentence for _, texts in sources for _, told in texts for sentence in told])
        return cls([*sources, (0.08, _musique(data))], names)

    def draw(self, rng: Random) -> Text:
        """A text, the sources by their shares."""
        [(_, texts)] = rng.choices(self.sources, [share for share, _ in self.sources])
        return rng.choice(texts)

    def homes(self) -> dict[str, tuple[Text, int]]:
        """Per sentence, by its letters and digits, a text that has it and its place there."""
        return {
            key_of(sentence): (text, place)
            for _, texts in self.sources
            for text in texts
            for place, sentence in enumerate(text[1])
        }


def window(rng: Random, sentences: Sequence[str], place: int, characters: int, drop: bool = False) -> list[str]:
    """The sentence at `place` among its neighbours, in order, of about so many characters. drop: without itself."""
    start, end = place, place + 1
    while sum(map(len, sentences[start:end])) < characters and (start > 0 or end < len(sentences)):
        if start > 0 and (end == len(sentences) or rng.random() < 0.5):
            start -= 1
        else:
            end += 1
    return [text for number, text in enumerate(sentences[start:end], start) if not (drop and number == place)]


def _names(sentences: Sequence[str]) -> list[str]:
    """What names may be replaced by: those inside sentences, without words that are also written in lower case."""
    common = {word for sentence in sentences for word in re.findall(r"(?<!\w)[a-z]+", sentence)}
    found = {value.text for text in sentences for value in find_values(text) if value.kind == "name" and value.start}
    return sorted(name for name in found if 3 < len(name) < 40 and (" " in name or name.lower() not in common))


def prose(sentences: Sequence[str]) -> list[str]:
    """The sentences that are running text, by their length and without marks of web pages."""
    return [text for text in sentences if _WORDS[0] <= len(text.split()) <= _WORDS[1] and not _NO_PROSE.search(text)]


def _fever(fever: Fever) -> list[Text]:
    texts = dict.fromkeys(pair.evidence for pair in fever.train)
    found = (("", prose(sentences_of(text))) for text in texts)
    return [text for text in found if text[1]]


def _fool_me_twice(data: Path) -> list[Text]:
    """Per page, its evidence and what was retrieved from it; not in the page's order."""
    pages: dict[str, dict[str, None]] = {}
    for row in read_rows(data / "fool_me_twice" / "claims.jsonl"):
        if fool_me_twice_in_training(int(share_of("fm2/" + row["page"], "folds") * FOLDS)):
            kept = pages.setdefault(row["page"], {})
            texts = [*sentences_of(clean(row["evidence"])), *map(clean, row["retrieved"])]
            kept.update(dict.fromkeys(text for text in prose(texts) if text[0].isalnum()))
    return [(page, list(kept)) for page, kept in pages.items() if len(kept) > 1]


def _wice(data: Path) -> list[Text]:
    found = []
    for row in read_rows(data / "wice" / "claims.jsonl"):
        sentences = [clean(text) for text in row["evidence"]]
        title = sentences[0].removeprefix("(meta data) TITLE: ") if sentences[0].startswith("(meta") else ""
        if wice_in_training("wice/" + title):
            kept = [text for text in sentences[1:] if len(text) > 40 and text.endswith((".", '"'))]
            found.append(("", prose(kept)))
    return [text for text in found if len(text[1]) > 3]


def _bios(data: Path) -> list[Text]:
    found = []
    for row in read_rows(data / "factscore" / "chatgpt.jsonl"):
        if share_of("bio/" + row["topic"]) < BIOS_IN_TRAINING:
            found.append((row["topic"], [clean(note["text"]) for note in row["annotations"] or ()]))
    return [text for text in found if len(text[1]) > 1]


def _musique(data: Path) -> list[Text]:
    """Paragraphs in lower case, as that copy of MuSiQue has them."""
    found = []
    for row in json.loads((data / "musique" / "musique_s.json").read_text()):
        for context in row["ctxs"]:
            text = re.sub(r"\s*([-/'])\s*", r"\1", clean(context["text"]))
            found.append(("", prose(_LOWER_CASE_END.split(text)[1:-1])))
    return [text for text in found if len(text[1]) > 2]
