"""Pairs of evidence and claim, the cleaning of their text, and the splits that keep related texts together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum


class Label(IntEnum):
    """The judge's classes, in the order of its columns."""

    SUPPORTED = 0
    REFUTED = 1
    INCONCLUSIVE = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim beside evidence, and what the evidence says of it.

    title: of the evidence's page, empty if unknown. group: pairs of one group share text and stay in one split.
    """

    evidence: str
    claim: str
    label: Label
    title: str = ""
    group: str = ""

    def under_title(self) -> Pair:
        """The pair as the verifier shows it to a judge: the title, where there is one, leads the evidence."""
        return replace(self, evidence=f"{self.title}: {self.evidence}", title="") if self.title else self


_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
_SENTENCE = re.compile(r"(?<=[.?!])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Inc|Ltd|Co|Corp|Gen|Col|Lt|Sgt|U\.S)|\b[A-Z])\.$")


def clean(text: str) -> str:
    """The text without the marks of treebank tokenization ("-LRB-", "``", " ,"), blanks single."""
    for mark, character in _BRACKETS.items():
        text = text.replace(mark, character)
    text = re.sub(r"\s+([,.;:!?)\]%])", r"\1", text)
    text = re.sub(r"([(\[])\s+", r"\1", text)
    text = re.sub(r"\s+('s|n't|'re|'ve|'ll|'d)\b", r"\1", text)
    return " ".join(text.split())


def sentences_of(text: str) -> list[str]:
    """Sentences of clean text; a cut after an initial or a usual abbreviation is undone."""
    sentences: list[str] = []
    for piece in _SENTENCE.split(text):
        if sentences and _ABBREVIATION.search(sentences[-1]):
            sentences[-1] += " " + piece
        else:
            sentences.append(piece)
    return [sentence for sentence in sentences if sentence]


def key_of(text: str) -> str:
    """Letters and digits alone, in lower case: equal for texts that differ in spacing and punctuation."""
    return " ".join(re.findall(r"\w+", text.lower()))


def grouped(key_sets: Sequence[Iterable[str]]) -> list[int]:
    """The group of each item: items that share a key, directly or through others, get the same number."""
    parents = list(range(len(key_sets)))

    def root(item: int) -> int:
        while parents[item] != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    first: dict[str, int] = {}
    for item, keys in enumerate(key_sets):
        for key in keys:
            parents[root(item)] = root(first.setdefault(key, item))
    return [root(item) for item in range(len(key_sets))]


def share_of(group: str, salt: str = "") -> float:
    """A number in [0, 1) that depends on the name of the group alone, for splits that never change."""
    digest = hashlib.sha256(f"{salt}/{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
