"""The prompt by which a causal language model judges a claim, and the words that it answers with.

The evidence comes first, so that the claims about one passage share their prompts' beginning. Its parts are tokenised
apart, so that the cut never falls into the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ewe.verification.judges.protocol import Pair

ANSWERS = (" true", " false", " unknown")
"""What the model goes on with, in the order of a judge's columns: supported, refuted, inconclusive."""

LEAST_EVIDENCE = 8
"""Tokens of evidence without which nothing can be judged."""

_EVIDENCE = "Evidence:"
_CLAIM = "\nClaim: {claim}\nThe claim is"
_CHARACTERS_PER_TOKEN = 32  # Evidence beyond this is not even tokenised: the cut falls long before.


def answer_ids(tokenizer: Any) -> list[int]:
    """The token ids [3] of ANSWERS. Raises ValueError if one of them is more than one token of this tokenizer."""
    found = [_ids(tokenizer, [answer])[0] for answer in ANSWERS]
    if any(len(ids) != 1 for ids in found):
        raise ValueError(f"the tokenizer has no single tokens for {', '.join(map(repr, ANSWERS))}")
    return [ids[0] for ids in found]


def encode_pairs(tokenizer: Any, pairs: Sequence[Pair], max_tokens: int) -> list[list[int]]:
    """Per (evidence, claim) the ids of its prompt, at most `max_tokens`, of which only evidence is cut at its end.

    Control tokens spelled out in the texts are plain text. A pair whose claim is empty or leaves no room for evidence
    has no ids.
    """
    if not pairs:
        return []
    [opening] = _ids(tokenizer, [_EVIDENCE])
    limit = max_tokens * _CHARACTERS_PER_TOKEN
    evidence = _ids(tokenizer, [" " + evidence[:limit] for evidence, _ in pairs])
    claims = _ids(tokenizer, [_CLAIM.format(claim=claim) for _, claim in pairs])
    made = []
    for (_, claim), told, asked in zip(pairs, evidence, claims, strict=True):
        room = max_tokens - len(opening) - len(asked)
        fits = claim.strip() and room >= LEAST_EVIDENCE
        made.append([*opening, *told[:room], *asked] if fits else [])
    return made


def _ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    clean = [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    ids: list[list[int]] = tokenizer(clean, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return ids
