"""The sets in ../shared/data as passages, claims and questions to train a reader on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge_training.pairs import clean, key_of, sentences_of

from reader_training.records import Passage, Reading, read_rows

_WORDS = (60, 150)
_NO_PROSE = re.compile(r"https?:|[|{}<>*#_=]|\.\.\.$|^\W*$")


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about a passage; true: whether the passage supports it (else it refutes it); proof: the sentences."""

    text: str
    true: bool
    passage: Passage
    proof: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything a mixture is drawn from."""

    passages: tuple[Passage, ...]
    claims: tuple[Claim, ...]
    readings: tuple[Reading, ...]


def read_sources(data: Path, extra: Sequence[Reading] = ()) -> Sources:
    """All sets in the folder `data`, and the questions of other JSONL files."""
    claims = [*_fever(data), *_fool_me_twice(data), *_wice_claims(data)]
    readings = [*_musique(data), *extra]
    told = [claim.passage for claim in claims]
    asked = [passage for reading in readings for passage in (*reading.right, *reading.others)]
    passages = dict.fromkeys([*told, *asked, *_fool_me_twice_pages(data), *_wice_pages(data)])
    return Sources(tuple(passages), tuple(claims), tuple(readings))


def paragraphs(sentences: Iterable[str]) -> Iterator[str]:
    """Sentences that follow each other, joined to texts of about the length of an encyclopedia's paragraph."""
    least, most = _WORDS
    words: list[str] = []
    for sentence in sentences:
        added = sentence.split()
        if len(words) + len(added) > most and len(words) >= least:
            yield " ".join(words)
            words = []
        words += added
        if len(words) > 1.5 * most:
            words = []
    if len(words) >= least:
        yield " ".join(words)


def _fever(data: Path) -> Iterator[Claim]:
    for row in read_rows(data / "fever" / "claims.jsonl"):
        proof = tuple(sentences_of(clean(row["evidence"])))
        passage = Passage("", " ".join(proof), "fever")
        if proof and len(passage.text.split()) < 220:
            yield Claim(clean(row["claim"]), row["label"] == "supported", passage, proof)


def _fool_me_twice(data: Path) -> Iterator[Claim]:
    for number, row in enumerate(read_rows(data / "fool_me_twice" / "claims.jsonl")):
        proof = tuple(sentences_of(clean(row["evidence"])))
        around = [clean(text) for text in row["retrieved"]]
        around = [text for text in around if _is_prose(text) and key_of(text) not in key_of(" ".join(proof))][:4]
        place = number % (len(around) + 1)
        text = " ".join([*around[:place], *proof, *around[place:]])
        if proof and len(text.split()) < 220:
            passage = Passage(_page_title(row["page"]), text, "fool_me_twice")
            yield Claim(clean(row["claim"]), row["label"] == "supported", passage, proof)


def _fool_me_twice_pages(data: Path) -> Iterator[Passage]:
    """What was retrieved from each page for all claims about it, as paragraphs."""
    pages: dict[str, dict[str, None]] = {}
    for row in read_rows(data / "fool_me_twice" / "claims.jsonl"):
        texts = (clean(text) for text in (*row["retrieved"], row["evidence"]))
        pages.setdefault(row["page"], {}).update(dict.fromkeys(text for text in texts if _is_prose(text)))
    for page, sentences in pages.items():
        for text in paragraphs(sentences):
            yield Passage(_page_title(page), text, "fool_me_twice")


def _wice_claims(data: Path) -> Iterator[Claim]:
    for row in read_rows(data / "wice" / "claims.jsonl"):
        chosen = row["supporting_sentences"][0] if row["supporting_sentences"] else []
        proof = tuple(clean(row["evidence"][index]) for index in sorted(chosen))
        if row["label"] == "supported" and proof and len(" ".join(proof).split()) < 220:
            yield Claim(clean(row["claim"]), True, Passage(_wice_title(row), " ".join(proof), "wice"), proof)


def _wice_pages(data: Path) -> Iterator[Passage]:
    seen: set[str] = set()
    for row in read_rows(data / "wice" / "claims.jsonl"):
        sentences = [clean(text) for text in row["evidence"]]
        for text in paragraphs(text for text in sentences if _is_prose(text)):
            if text not in seen:
                seen.add(text)
                yield Passage(_wice_title(row), text, "wice")


def _musique(data: Path) -> Iterator[Reading]:
    """MuSiQue's questions with the parts of their texts that hold the answer, and the others as distractors."""
    for row in json.loads((data / "musique" / "musique_s.json").read_text()):
        texts = dict.fromkeys(text for context in row["ctxs"] for text in _musique_parts(context["text"]))
        answer = row["answers"][0]
        passages = [Passage("", text, "musique") for text in texts]
        right = [passage for passage in passages if key_of(answer) in key_of(passage.text)]
        names = set(re.findall(r"[A-Z]\w+", row["question"])[1:])
        right.sort(key=lambda passage: -sum(name.lower() in passage.text for name in names))
        if right:
            others = tuple(passage for passage in passages if passage not in right)
            yield Reading(row["question"], (answer,), tuple(right[:1]), others, f"{answer}.")


def _musique_parts(text: str) -> Iterator[str]:
    """MuSiQue's texts are windows without capitals: they are cut at full stops, and the torn ends are left out."""
    sentences = clean(re.sub(r"\s*' s\b", "'s", text.replace(" - ", "-"))).split(". ")[1:-1]
    return paragraphs(sentence + "." for sentence in sentences)


def _is_prose(sentence: str) -> bool:
    return len(sentence.split()) >= 5 and sentence[-1] in ".!?\"'" and not _NO_PROSE.search(sentence)


def _page_title(page: str) -> str:
    return re.sub(r" \([^)]*\)$", "", page)


def _wice_title(row: dict[str, list[str]]) -> str:
    first = clean(row["evidence"][0])
    return re.split(r" [–|-] ", first.removeprefix("(meta data) TITLE: "))[0] if first.startswith("(meta") else ""
