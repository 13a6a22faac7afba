"""Scripts and components for tests of the engine: all they do is a fixed function of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from ewe.types import (
    Claim,
    Evidence,
    Passage,
    ScoredPassage,
    Verdict,
    VerificationRequest,
    VerificationResult,
)


def number(*parts: Any) -> int:
    """A fixed large number for these values."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big")


def sentences(context: str, units: tuple[str, ...]) -> str:
    """A script: sentences of a few letters each, that depend on the whole context and on the memory."""
    if context.endswith("."):
        return " "
    choice = number(context, units)
    if context.endswith(". "):
        return "ABCDEFGHIJ"[choice % 10]
    return "." if choice % 9 == 0 and context[-1] != " " else "abcdefghij "[choice % 11]


def words(*texts: str) -> Callable[[str, tuple[str, ...]], str]:
    """A script: the n-th text if n units are in memory (the last one if there are more), then the end of the text.

    A prompt ends with ":"; what follows it has been written.
    """

    def next_character(context: str, units: tuple[str, ...]) -> str:
        written = context[context.rindex(":") + 1 :]
        text = texts[min(len(units), len(texts) - 1)]
        return text[len(written)] if len(written) < len(text) else "\x00"

    return next_character


class Library:
    """A retriever that finds one to three of ten passages, by the query's characters."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        return [self._find(query)[:top_k] for query in queries]

    def _find(self, query: str) -> list[ScoredPassage]:
        numbers = [number(query, place) % 10 for place in range(1 + number(query) % 3)]
        return [ScoredPassage(Passage(f"p{n}", f"fact {n} of ten", source="library"), 1.0 + n) for n in numbers]


class Judge:
    """A verifier whose verdict is a function of the sentence, and whose evidence names it.

    verdict: from sentence to verdict; without one about every third sentence is refuted.
    """

    def __init__(self, verdict: Callable[[str], Verdict] | None = None) -> None:
        self._verdict = verdict or self._by_hash
        self.seen: list[str] = []

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        self.seen += [request.sentence for request in requests]
        return [self._judge(request.sentence) for request in requests]

    def _judge(self, sentence: str) -> VerificationResult:
        verdict = self._verdict(sentence)
        passage = Passage(f"e{number(sentence) % 97}", f"see {sentence[:12].lower()}", source="evidence")
        claim = Claim(sentence, 0, len(sentence), verdict, 1.0, (passage.id,))
        return VerificationResult((claim,), (Evidence(passage, verdict, 1.0),))

    def _by_hash(self, sentence: str) -> Verdict:
        return [Verdict.REFUTED, Verdict.SUPPORTED, Verdict.SUPPORTED, Verdict.INCONCLUSIVE][number(sentence) % 4]


class Answers:
    """A verifier with fixed verdicts per sentence (one per claim; supported where nothing is said).

    Its evidence against a sentence is a passage of its own, or `evidence` every time.
    """

    def __init__(self, verdicts: dict[str, list[Verdict]], evidence: Passage | None = None) -> None:
        self._verdicts = verdicts
        self._evidence = evidence
        self.seen: list[VerificationRequest] = []

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        self.seen += requests
        return [self._judge(request.sentence) for request in requests]

    def _judge(self, sentence: str) -> VerificationResult:
        verdicts = self._verdicts.get(sentence, [Verdict.SUPPORTED])
        passage = self._evidence or Passage(f"about {sentence}", f"against {sentence}".lower())
        claims = tuple(Claim(f"claim {i}", verdict=v, evidence_ids=(passage.id,)) for i, v in enumerate(verdicts))
        evidence = (Evidence(passage, Verdict.REFUTED, 1.0),) if Verdict.REFUTED in verdicts else ()
        return VerificationResult(claims, evidence)


class Notebook:
    """A retriever that notes its queries and finds a new passage each time."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        self.queries += queries
        return [[ScoredPassage(Passage(f"p{len(self.queries)}", f"note {len(self.queries)}"), 1.0)] for _ in queries]
