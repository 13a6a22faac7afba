"""The labelled sets in ../shared/data as pairs, each with its split.

Splits (all by hashes of groups, see `pairs.share_of`; no sentence of evidence and no claim crosses them):

- FEVER: claims that share a sentence of evidence, a claim or the name they begin with are one group. Every group that
  touches a text of FEVER-Symmetric, and one in 24 of the others, is held back for the test.
- FEVER-Symmetric dev: test only.
- Fool-Me-Twice: four folds by page. A fold's figures come from weights that saw the other three.
- WiCE, ConflictQA: trained on, not tested. XQuAD: its text alone. FActScore: half of the people, by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge_training.pairs import Label, Pair, clean, grouped, key_of, sentences_of, share_of

FOLDS = 4
_LABELS = {"supported": Label.SUPPORTED, "refuted": Label.REFUTED}
_LEADING_NAME = re.compile(r"^(?:The |A |An )?((?:[A-Z][\w'.-]*)(?: (?:of|the|and|in|on|for|de|[A-Z0-9][\w'.-]*))* ?)")
_FEVER_HELD_BACK = 1 / 24
BIOS_IN_TRAINING = 0.5
_EVIDENCE_CHARACTERS = 1200


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


@dataclass(frozen=True, slots=True)
class Fever:
    """FEVER without what FEVER-Symmetric shares with it, and what is held back."""

    train: tuple[Pair, ...]
    test: tuple[Pair, ...]


def read_symmetric(data: Path) -> list[Pair]:
    """FEVER-Symmetric dev, an evaluation set."""
    rows = read_rows(data / "fever_symmetric" / "claims.jsonl")
    return [Pair(clean(row["evidence"]), clean(row["claim"]), _LABELS[row["label"]]) for row in rows]


def read_fever(data: Path) -> Fever:
    """FEVER's training and test pairs."""
    symmetric = read_symmetric(data)
    rows = read_rows(data / "fever" / "claims.jsonl")
    pairs = [Pair(clean(row["evidence"]), clean(row["claim"]), _LABELS[row["label"]]) for row in rows]
    groups = grouped([_text_keys(pair) for pair in (*pairs, *symmetric)])
    touched = set(groups[len(pairs) :])
    members: dict[int, list[Pair]] = {}
    for pair, group in zip(pairs, groups, strict=False):
        members.setdefault(group, []).append(pair)
    train: dict[tuple[str, str], Pair] = {}
    test: dict[tuple[str, str], Pair] = {}
    for group, group_pairs in members.items():
        name = min(key_of(pair.claim) for pair in group_pairs)
        held_back = group in touched or share_of(name, "fever") < _FEVER_HELD_BACK
        for pair in group_pairs:
            grouped_pair = Pair(pair.evidence, pair.claim, pair.label, group="fever/" + name)
            (test if held_back else train)[pair.evidence, pair.claim] = grouped_pair
    return Fever(tuple(train.values()), tuple(test.values()))


def _text_keys(pair: Pair) -> set[str]:
    """What makes pairs related: the claim, each longer sentence of the evidence, and the claim's leading name."""
    keys = {key_of(pair.claim)}
    keys.update(key for sentence in sentences_of(pair.evidence) if len(key := key_of(sentence)) > 25)
    name = _LEADING_NAME.match(pair.claim)
    if name and len(name[1].split()) > 1:
        keys.add("name " + key_of(name[1]))
    return keys


def read_fool_me_twice(data: Path) -> list[tuple[int, Pair, tuple[str, ...]]]:
    """(fold, pair, sentences retrieved from the same page that are not its evidence) per claim; folds are by page."""
    found = []
    for row in read_rows(data / "fool_me_twice" / "claims.jsonl"):
        evidence = clean(row["evidence"])
        pair = Pair(evidence, clean(row["claim"]), _LABELS[row["label"]], row["page"], "fm2/" + row["page"])
        key = key_of(evidence)
        others = [clean(text) for text in row["retrieved"]]
        apart = tuple(text for text in others if key_of(text) not in key and key[:60] not in key_of(text))
        found.append((int(share_of(pair.group, "folds") * FOLDS), pair, apart))
    return found


def read_wice(data: Path) -> list[Pair]:
    """WiCE with its supporting sentences as evidence, and its whole-page labels: partial support settles nothing."""
    pairs = []
    for row in read_rows(data / "wice" / "claims.jsonl"):
        sentences = [clean(text) for text in row["evidence"]]
        title = sentences[0].removeprefix("(meta data) TITLE: ") if sentences[0].startswith("(meta") else ""
        claim, group = clean(row["claim"]), "wice/" + title
        chosen = {index for group_ in row["supporting_sentences"] for index in group_}
        best = row["supporting_sentences"][0]
        whole = row["label"] == "supported"
        if best:
            label = Label.SUPPORTED if whole else Label.INCONCLUSIVE
            pairs.append(Pair(" ".join(sentences[i] for i in sorted(best)), claim, label, title, group))
        rest = [text for index, text in enumerate(sentences) if index not in chosen and len(text) > 40]
        start = int(share_of(claim, "rest") * max(1, len(rest) - 4))
        if rest:
            pairs.append(Pair(" ".join(rest[start : start + 4]), claim, Label.INCONCLUSIVE, title, group))
    return [_shortened(pair) for pair in pairs]


def read_conflictqa(data: Path) -> list[Pair]:
    """ConflictQA: two answers that exclude each other, each with its evidence: four pairs per question."""
    pairs = []
    for row in read_rows(data / "conflictqa" / "gpt4.jsonl"):
        sides = [(row["memory_answer"], row["parametric_memory"]), (row["counter_answer"], row["counter_memory"])]
        for claim, own in sides:
            for _, text in sides:
                label = Label.SUPPORTED if text == own else Label.REFUTED
                pairs.append(Pair(clean(text), clean(claim), label, group="conflictqa/" + row["question"]))
    return [_shortened(pair) for pair in pairs if pair.claim and pair.evidence]


def read_bios(data: Path) -> list[Pair]:
    """Sentences of ChatGPT's biographies beside the human atomic facts in them (supported), and beside those of another
    sentence of the same text (inconclusive); the human labels of truth are not used.
    """
    pairs = []
    for row in read_rows(data / "factscore" / "chatgpt.jsonl"):
        group = "bio/" + row["topic"]
        if share_of(group) >= BIOS_IN_TRAINING:
            continue
        told = [(note["text"], _facts(note)) for note in row["annotations"] or () if _facts(note)]
        for number, (text, facts) in enumerate(told):
            for fact in facts:
                pairs.append(Pair(clean(text), clean(fact), Label.SUPPORTED, row["topic"], group))
            elsewhere = told[(number + 1) % len(told)][1]
            for fact in elsewhere[:2] if len(told) > 1 else ():
                if key_of(fact) not in key_of(text):
                    pairs.append(Pair(clean(text), clean(fact), Label.INCONCLUSIVE, row["topic"], group))
    return pairs


def _facts(note: Mapping[str, Any]) -> list[str]:
    return [fact["text"] for fact in note["human-atomic-facts"] or () if fact["label"] in ("S", "NS")]


def read_xquad(data: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(id, title, paragraph) of all paragraphs of `xquad_en`, as its file has them; ids: "xquad/ARTICLE/NUMBER"."""
    for article in json.loads((data / "xquad_en" / "xquad.en.json").read_text(encoding="utf-8"))["data"]:
        for number, paragraph in enumerate(article["paragraphs"]):
            yield f"xquad/{article['title']}/{number}", article["title"].replace("_", " "), paragraph


def read_paragraphs(data: Path) -> list[tuple[str, list[str]]]:
    """(title, sentences) of running text without labels: XQuAD's paragraphs and the pages behind WiCE."""
    found = [(title, sentences_of(clean(paragraph["context"]))) for _, title, paragraph in read_xquad(data)]
    for row in read_rows(data / "wice" / "claims.jsonl"):
        sentences = [clean(text) for text in row["evidence"] if 50 < len(text) < 350 and text.rstrip().endswith(".")]
        found.extend(("", sentences[start : start + 6]) for start in range(0, len(sentences), 6))
    return [(title, sentences) for title, sentences in found if sentences]


def _shortened(pair: Pair) -> Pair:
    return Pair(pair.evidence[:_EVIDENCE_CHARACTERS], pair.claim, pair.label, pair.title, pair.group)
