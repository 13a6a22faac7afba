"""A checked text as plain data: for `ewe verify --json`, its page, and as pairs to train a judge with."""

from collections.abc import Iterator, Mapping
from typing import Any

from ewe.text.check_result import CheckedSentence, CheckedText
from ewe.text.jsonable import jsonable
from ewe.types import Verdict


def checked_data(checked: CheckedText) -> dict[str, Any]:
    """JSON-ready: verdict, counts, every sentence with its claims and evidence, and the passages by id."""
    return {
        **outcome_data(checked),
        "prompt": checked.prompt,
        "text": checked.text,
        "sentences": [sentence_data(item) for item in checked.sentences],
        "sources": jsonable(checked.sources),
    }


def outcome_data(checked: CheckedText) -> dict[str, Any]:
    """What the text came to: its verdict, the verifier's failure if there was one, and how many there are of what."""
    return {
        "verdict": checked.verdict.value,
        "error": jsonable(checked.error),
        "counts": {
            "sentences": _named(checked.count_sentences()),
            "claims": _named(checked.count_claims()),
            "conflicts": checked.num_conflicts,
        },
    }


def sentence_data(checked: CheckedSentence) -> dict[str, Any]:
    """One sentence; a claim's `evidence` and `decided_by` are places in the sentence's list of evidence."""
    sentence = checked.sentence
    claims = [
        {
            **jsonable(claim),
            "evidence": [checked.evidence.index(item) for item in checked.evidence_of(claim)],
            "conflicting": checked.is_conflicting(claim),
        }
        for claim in sentence.claims
    ]
    evidence = [
        {"id": item.passage.id, "stance": item.stance, "score": item.score, "excerpt": item.excerpt}
        for item in checked.evidence
    ]
    named = ("text", "start", "end", "verdict", "score", "reason", "source_ids")
    plain = {name: getattr(sentence, name) for name in named}
    deciding = checked.deciding
    return {
        **jsonable(plain),
        "notes": jsonable(checked.notes),
        "claims": claims,
        "evidence": jsonable(evidence),
        "decided_by": None if deciding is None else checked.evidence.index(deciding),
    }


def _named(counts: Mapping[Verdict, int]) -> dict[str, int]:
    return {verdict.value: count for verdict, count in counts.items()}


def wrong_calls(checked: CheckedText, expected: Verdict) -> Iterator[dict[str, Any]]:
    """One pair per claim that has another verdict than it should, and piece of evidence for the wrong side.

    Keys: evidence, title, claim, label (what it should have been), given (the verdict it had), score.
    """
    for item in checked.sentences:
        for claim in item.sentence.claims:
            if claim.verdict is expected:
                continue
            for piece in item.evidence_of(claim):
                if piece.stance is not expected:
                    pair = {
                        "evidence": piece.excerpt or piece.passage.text,
                        "title": piece.passage.title,
                        "claim": claim.text,
                        "label": expected.value,
                        "given": claim.verdict.value,
                        "score": piece.score,
                    }
                    yield jsonable(pair)
