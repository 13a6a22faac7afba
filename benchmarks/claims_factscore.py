"""What the rules find of the facts that people found: FActScore's ChatGPT biographies with human atomic facts.

Biographies at even places are those that the rules were written against, odd ones are held back (`--half`). Two
criteria. Lexical, always: a fact is found if one claim holds at least four fifths of its content words (stems, the
topic's name apart, at least one). By entailment (--judge NAME, or none): one of the three claims nearest to the fact in
words supports it with the highest probability of the three, and a claim is faithful if its sentence (after the text
before it) supports it. Beside the rules: each sentence as one claim (an upper bound of recall that separates nothing),
and the frames of the value comparison. claims_per_fact compares numbers; words_over_fact is how many times longer the
claim is that holds a fact, both in content words, so that 1 is as fine as people cut.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, parse_arguments, report
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words
from ewe.types import VerificationRequest
from ewe.verification import load_judge
from ewe.verification.claims import extract_claims
from ewe.verification.extraction.rules import RuleClaims
from ewe.verification.judges.protocol import Judge
from ewe.verification.stems import stem
from ewe.verification.wordlists import FUNCTION_WORDS

_SHARE = 0.8
_NEAREST = 3
_PRONOUN = re.compile(r"^(?:He|She|They|It)\b")
_OWNER = re.compile(r"^(?:His|Her|Their|Its)\b")
Extract = Callable[[Sequence[VerificationRequest]], list[list[str]]]


@dataclass(frozen=True, slots=True)
class Item:
    """One sentence of a biography with the facts that people took from it."""

    topic: str
    request: VerificationRequest
    facts: tuple[str, ...]


_MADE_UP = [
    Item(
        "Mirela Hask",
        VerificationRequest("Who was Mirela Hask?", "", "Mirela Hask was a hydrologist, born in Orvane in 1931."),
        ("Mirela Hask was a hydrologist.", "Mirela Hask was born in Orvane.", "She was born in 1931."),
    )
]


def read_items(path: Path, half: str) -> list[Item]:
    """The relevant sentences that people took facts from, of the biographies at even or odd places."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    wanted = {"development": (0,), "held-back": (1,), "all": (0, 1)}[half]
    items = []
    for number, row in enumerate(rows):
        if number % 2 not in wanted:
            continue
        before = ""
        for told in row["annotations"] or []:
            facts = tuple(fact["text"] for fact in told.get("human-atomic-facts") or [])
            if facts:
                items.append(Item(row["topic"], VerificationRequest(row["input"], before, told["text"]), facts))
            before = f"{before} {told['text']}".strip()
    return items


def content(text: str, topic: str) -> frozenset[str]:
    """Stems of the content words of `text` without the topic's name."""
    names = {stem(word) for word in words(topic)}
    return frozenset(stem(word) for word in words(text) if word not in FUNCTION_WORDS) - names


def named(fact: str, topic: str) -> str:
    """A fact with the topic's name in the place of the pronoun that it begins with."""
    name = topic.split(" (")[0].rstrip(".")
    return _OWNER.sub(f"{name}'s", _PRONOUN.sub(name, fact))


def lexical(items: Sequence[Item], claims: Sequence[Sequence[str]]) -> dict[str, float]:
    """Recall and fineness by content words."""
    found, lengths, total = 0, [], 0
    for item, told in zip(items, claims, strict=True):
        stems = [content(claim, item.topic) for claim in told]
        for fact in item.facts:
            wanted = content(fact, item.topic)
            if not wanted:
                continue
            total += 1
            holding = [len(one) for one in stems if len(wanted & one) >= _SHARE * len(wanted)]
            found += bool(holding)
            lengths += [min(holding) / len(wanted)] if holding else []
    return {"lexical_recall": found / max(1, total), "words_over_fact": statistics.mean(lengths) if lengths else 0.0}


def by_entailment(items: Sequence[Item], claims: Sequence[Sequence[str]], judge: Judge) -> dict[str, float]:
    """Recall of facts and faithfulness of claims, as the judge sees them."""
    pairs: list[tuple[str, str]] = []
    groups: list[range] = []
    for item, told in zip(items, claims, strict=True):
        for fact in item.facts:
            wanted = content(fact, item.topic)
            nearest = sorted(told, key=lambda one: -len(wanted & content(one, item.topic)))[:_NEAREST]
            groups.append(range(len(pairs), len(pairs) + len(nearest)))
            pairs += [(claim, named(fact, item.topic)) for claim in nearest]
    facts = len(pairs)
    for item, told in zip(items, claims, strict=True):
        source = f"{item.topic}: {item.request.preceding[-300:]} {item.request.sentence}"
        pairs += [(source, claim) for claim in told]
    supports = judge.judge(pairs).argmax(axis=1) == 0
    recalled = [any(supports[at] for at in group) for group in groups]
    return {"entailment_recall": statistics.mean(recalled), "faithful_claims": float(supports[facts:].mean())}


def extractors() -> dict[str, Extract]:
    """What is compared, by name."""
    rules, splitter = RuleClaims(), SentenceSplitter()
    return {
        "rules": lambda requests: [[claim.text for claim in told] for told in rules.extract(requests)],
        "sentences": lambda requests: [[request.sentence] for request in requests],
        "value frames": lambda requests: [
            [one.claim.text for one in extract_claims(request, splitter)] for request in requests
        ],
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What this benchmark asks beside the common arguments."""
    parser.add_argument("--half", choices=("development", "held-back", "all"), default="held-back")
    parser.add_argument("--judge", default="builtin", help="judge for the figures by entailment; none: leave them out")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the data sets")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, add_arguments)
    data = arguments.data / "factscore" / "chatgpt.jsonl"
    items = _MADE_UP if arguments.smoke else read_items(data, arguments.half)
    judge = load_judge(arguments.judge) if arguments.judge != "none" else None
    facts = sum(len(item.facts) for item in items)
    figures: dict[str, Any] = {"sentences": len(items), "human_facts": facts}
    for name, extract in extractors().items():
        start = time.perf_counter()
        claims = extract([item.request for item in items])
        taken = time.perf_counter() - start
        total = sum(map(len, claims))
        measured = {"claims": total, "claims_per_fact": total / facts, **lexical(items, claims)}
        measured |= by_entailment(items, claims, judge) if judge is not None else {}
        measured["ms_per_sentence"] = taken / len(items) * 1e3
        figures |= {f"{name}: {key}": round(value, 3) for key, value in measured.items()}
    report("claims_factscore", arguments, {"half": arguments.half, "judge": arguments.judge}, figures)


if __name__ == "__main__":
    main()
