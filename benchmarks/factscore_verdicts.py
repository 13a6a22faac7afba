"""Verdicts on the atomic facts that people took from ChatGPT's biographies, against the labels that people gave them.

FActScore labels a fact S (supported by Wikipedia), NS (not supported) or IR (beside the point). Its articles are not
among the data sets; for some of the people passages are, as evidence of FEVER, Fool-Me-Twice and WiCE that names them
in full. For all others there is nothing to check against, and the report says for how many.

Two tables per judge. "own": each fact against the passages that name its person, which hold a small part of what the
labels were given by, so that most facts must stay inconclusive. What can be asked is whether verdicts are right where
there are any: precision of "supported" is the share of S, precision of "refuted" the share of NS, both without IR.
"pool": facts of people without a passage against the passages of all, where every verdict is one too many.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, parse_arguments, report
from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Claim, Passage, Verdict, VerificationRequest
from ewe.types.protocols import Verifier
from ewe.verification import load_judge
from ewe.verification.claim_verifier import ClaimVerifier
from ewe.verification.decision import rule_of

_SENTENCES_PER_PASSAGE = 5  # of WiCE's pages, which come as lists of sentences
_BATCH = 64
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}

_PRONOUN = re.compile(r"^(?:He|She|They|It)\b")
_OWNER = re.compile(r"^(?:His|Her|Their|Its)\b")


@dataclass(frozen=True, slots=True)
class Fact:
    """A human atomic fact with the name of its person in place of a pronoun, and its label."""

    topic: str
    text: str
    label: str


class WholeFacts:
    """An extractor for texts that are claims already."""

    def extract(self, requests: Sequence[VerificationRequest]) -> list[list[Claim]]:
        """Each sentence as its own one claim."""
        return [[Claim(request.sentence, 0, len(request.sentence))] for request in requests]


def read_facts(path: Path) -> list[Fact]:
    """The labelled facts of all biographies."""
    return [
        Fact(row["topic"], named(fact["text"], row["topic"]), fact["label"])
        for row in _rows(path)
        for told in row["annotations"] or []
        for fact in told.get("human-atomic-facts") or []
    ]


def named(fact: str, topic: str) -> str:
    """A fact with the topic's name in the place of the pronoun that it begins with."""
    name = topic.split(" (")[0].rstrip(".")
    return _OWNER.sub(f"{name}'s", _PRONOUN.sub(name, fact))


def read_passages(data: Path) -> list[Passage]:
    """What the other data sets hold as evidence taken from real pages, each text once."""
    texts: dict[str, tuple[str, str]] = {}
    for row in _rows(data / "fever" / "claims.jsonl"):
        texts.setdefault(_plain(row["evidence"]), ("", "FEVER"))
    for row in _rows(data / "fool_me_twice" / "claims.jsonl"):
        for text in (row["evidence"], *row["retrieved"]):
            texts.setdefault(text, (row["page"], "Fool-Me-Twice"))
    for row in _rows(data / "wice" / "claims.jsonl"):
        sentences = row["evidence"]
        for start in range(0, len(sentences), _SENTENCES_PER_PASSAGE):
            texts.setdefault(" ".join(sentences[start : start + _SENTENCES_PER_PASSAGE]), ("", "WiCE"))
    return [Passage(str(number), text, *origin) for number, (text, origin) in enumerate(texts.items())]


def read(data: Path, smoke: bool) -> tuple[list[Fact], list[Passage]]:
    """Facts and passages of the data sets; a few made-up ones in a smoke run."""
    if smoke:
        told = {"S": "Ana Ruiz was born in 1931.", "NS": "Ana Ruiz was born in 1950.", "IR": "1931 was a year."}
        facts = [Fact("Ana Ruiz", text, label) for label, text in told.items()]
        return [*facts, Fact("Bo Lind", "Bo Lind was a weaver.", "S")], [Passage("0", "Ana Ruiz was born in 1931.")]
    if not (data / "factscore").exists():
        sys.exit(f"{data} lacks factscore: --data names the folder of the public sets")
    return read_facts(data / "factscore" / "chatgpt.jsonl"), read_passages(data)


def passages_of(topic: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages that name a person in full."""
    pattern = re.compile(rf"\b{re.escape(topic)}(?!\w)")
    return [passage for passage in passages if pattern.search(passage.text) or topic == passage.title]


def open_verifier(judge: str, passages: Sequence[Passage]) -> Verifier:
    """The verifier of a judge over these passages."""
    return ClaimVerifier(BM25Retriever(passages), WholeFacts(), load_judge(judge), rule_of(judge))


def verdicts(facts: Sequence[Fact], verifier: Verifier) -> Iterator[tuple[Fact, Verdict]]:
    """Every fact with its verdict."""
    for first in range(0, len(facts), _BATCH):
        batch = facts[first : first + _BATCH]
        results = verifier.verify([VerificationRequest("", "", fact.text) for fact in batch])
        yield from ((fact, result.verdict) for fact, result in zip(batch, results, strict=True))


def figures_of(found: Sequence[tuple[Fact, Verdict]]) -> dict[str, float]:
    """Counts per label and verdict, and how often they agree; shares of nothing are left out."""
    counts = Counter((fact.label, verdict) for fact, verdict in found)
    figures: dict[str, float] = {"facts": len(found)}
    for label in ("S", "NS", "IR"):
        figures |= {f"{label} {verdict.value}": counts[label, verdict] for verdict in Verdict}
    for verdict, right, wrong in ((Verdict.SUPPORTED, "S", "NS"), (Verdict.REFUTED, "NS", "S")):
        hits, given = counts[right, verdict], counts[right, verdict] + counts[wrong, verdict]
        labelled = sum(counts[right, each] for each in Verdict)
        figures |= {f"precision of {verdict.value}": round(hits / given, 3)} if given else {}
        figures |= {f"recall of {verdict.value}": round(hits / labelled, 3)} if labelled else {}
    return figures


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _plain(text: str) -> str:
    """FEVER's evidence without the marks of its tokenizer."""
    for mark, sign in _BRACKETS.items():
        text = text.replace(mark, sign)
    text = text.replace("``", '"').replace("''", '"')
    return re.sub(r" ([,.;:?!)\]'])", r"\1", re.sub(r"([(\[]) ", r"\1", text))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What this benchmark asks beside the common arguments."""
    parser.add_argument("--judge", action="append", help="a judge of load_judge; repeatable")
    parser.add_argument("--pool-facts", type=int, default=300, help="facts of people without a passage")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the data sets")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, add_arguments)
    facts, passages = read(arguments.data, arguments.smoke)
    own = {topic: passages_of(topic, passages) for topic in dict.fromkeys(fact.topic for fact in facts)}
    covered = [fact for fact in facts if own[fact.topic]]
    without = [fact for fact in facts if not own[fact.topic]]
    step = max(1, len(without) // arguments.pool_facts)
    figures: dict[str, float] = {
        "people": len(own),
        "people_with_passages": sum(map(bool, own.values())),
        "facts": len(facts),
        "facts_without_a_passage": len(without),
        "passages_of_people": sum(map(len, own.values())),
    }
    for judge in arguments.judge or ["builtin"]:
        found: list[tuple[Fact, Verdict]] = []
        for topic in dict.fromkeys(fact.topic for fact in covered):
            verifier = open_verifier(judge, own[topic])
            found += verdicts([fact for fact in covered if fact.topic == topic], verifier)
        pool = list(verdicts(without[::step], open_verifier(judge, passages)))
        figures |= {f"{judge}, own: {name}": value for name, value in figures_of(found).items()}
        figures |= {f"{judge}, pool: {name}": value for name, value in figures_of(pool).items()}
    report("factscore_verdicts", arguments, {"pool_facts": len(without[::step]), "passages": len(passages)}, figures)


if __name__ == "__main__":
    main()
