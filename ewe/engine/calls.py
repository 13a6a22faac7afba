"""What the worker threads call: retriever and verifier with their answers checked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from numbers import Real
from typing import Any

from ewe.protocols import Memories, Retriever, Verifier
from ewe.types import (
    Claim,
    Evidence,
    Passage,
    Query,
    ScoredPassage,
    Verdict,
    VerificationRequest,
    VerificationResult,
)


def retrieve(
    retriever: Retriever | None, memories: Memories | None, top_k: int, queries: Sequence[Query]
) -> list[list[ScoredPassage]]:
    """Per query what is remembered, then at most `top_k` passages, or the query's own number; each part best first.

    Raises TypeError for anything else than scored passages, ValueError for answers to another number of queries.
    """
    remembered = [[] for _ in queries] if memories is None else memories.recall(queries)
    numbers = [query.top_k or top_k for query in queries]
    found: list[list[ScoredPassage]] = [[] for _ in queries]
    if retriever is not None:
        found = retriever.retrieve([query.text for query in queries], max(numbers, default=top_k))
    results = [[*own, *hits[:most]] for own, hits, most in zip(remembered, found, numbers, strict=True)]
    for hit in (hit for hits in results for hit in hits):
        _expect(hit, ScoredPassage, "the retriever")
        _expect(hit.passage, Passage, "the retriever, in a ScoredPassage,")
        _expect(hit.score, Real, "the retriever, as a score,")
    return results


def verify(verifier: Verifier, batches: Sequence[Sequence[VerificationRequest]]) -> list[list[VerificationResult]]:
    """The results per batch, from one call for all; raises ValueError or TypeError for malformed ones."""
    requests = [request for batch in batches for request in batch]
    results = list(verifier.verify(requests))
    if len(results) != len(requests):
        raise ValueError(f"{len(results)} results for {len(requests)} sentences")
    for result in results:
        _check_result(result)
    remaining = iter(results)
    return [list(islice(remaining, len(batch))) for batch in batches]


def _check_result(result: Any) -> None:
    _expect(result, VerificationResult, "the verifier")
    for claim in result.claims:
        _expect(claim, Claim, "the verifier, among the claims,")
        _expect(claim.text, str, "the verifier, as a claim's text,")
        _expect(claim.verdict, Verdict, "the verifier, as a claim's verdict,")
        _expect(claim.evidence_ids, tuple, "the verifier, as a claim's evidence_ids,")
    for item in result.evidence:
        _expect(item, Evidence, "the verifier, as evidence,")
        _expect(item.passage, Passage, "the verifier, in its evidence,")
        _expect(item.stance, Verdict, "the verifier, as a stance,")
        _expect(item.score, Real, "the verifier, as a score,")
        _expect(item.excerpt, str, "the verifier, as an excerpt,")


def _expect(value: Any, kind: type, where: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{where} must return {kind.__name__}, got {type(value).__name__}")
