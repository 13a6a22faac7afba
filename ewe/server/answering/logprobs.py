"""Log-probabilities: the tokens of an answer as pieces of text, and these as text completions tell them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.server.schemas.completion_schemas import CompletionLogprobs
from ewe.types import Generation

_INCOMPLETE = "\ufffd"


@dataclass(frozen=True, slots=True)
class Piece:
    """A token's text where it stands, its natural-log probability, and the likeliest tokens at this place."""

    token: str
    logprob: float
    top_logprobs: list["Piece"] = field(default_factory=list)

    @property
    def bytes(self) -> list[int] | None:
        """The text in UTF-8; None if it is no whole character."""
        return None if _INCOMPLETE in self.token else list(self.token.encode())


def token_pieces(
    tokenizer: Any, prompt_ids: Sequence[int], generation: Generation, with_prompt: bool = False
) -> list[Piece]:
    """The tokens of an answer; one that is part of a character has no text, the one that completes it has all.

    What the model reasoned before it is left out.

    with_prompt: whether the prompt's tokens, which the engine was asked to score, come first. The first of them has no
    probability, and 0 stands for it.
    """
    tops = generation.top_logprobs or ({},) * len(generation.token_ids)
    first, ids = generation.stats.reasoning_tokens, generation.token_ids
    before = Detokenizer(tokenizer, (*prompt_ids, *ids[:first]))
    pieces = _pieces(before, ids[first:], generation.logprobs[first:], tops[first:])
    if not with_prompt:
        return pieces
    tops = ({}, *generation.prompt_top_logprobs) if generation.prompt_top_logprobs else ({},) * len(prompt_ids)
    return _pieces(Detokenizer(tokenizer, ()), prompt_ids, (0.0, *generation.prompt_logprobs), tops) + pieces


def completion_logprobs(pieces: Sequence[Piece], with_top: bool, with_prompt: bool) -> CompletionLogprobs:
    """The pieces as parallel lists; of alternatives with equal texts the likeliest counts."""
    tokens = [piece.token for piece in pieces]
    values: list[float | None] = [piece.logprob for piece in pieces]
    tops: list[dict[str, float] | None] = [_likeliest_first(piece.top_logprobs) for piece in pieces]
    if with_prompt:  # nothing foretells its first token
        values[0] = tops[0] = None
    return CompletionLogprobs(
        text_offset=[0, *accumulate(map(len, tokens))][:-1],
        token_logprobs=values,
        tokens=tokens,
        top_logprobs=tops if with_top else None,
    )


def _likeliest_first(pieces: Sequence[Piece]) -> dict[str, float]:
    likeliest: dict[str, float] = {}
    for piece in pieces:
        likeliest.setdefault(piece.token, piece.logprob)
    return likeliest


def _pieces(
    detokenizer: Detokenizer, token_ids: Sequence[int], logprobs: Sequence[float], tops: Sequence[Mapping[int, float]]
) -> list[Piece]:
    pieces = []
    for place, token_id in enumerate(token_ids):
        top = []
        for other, value in sorted(tops[place].items(), key=lambda item: -item[1]):
            top.append(Piece(detokenizer.append(other) or detokenizer.flush(), _finite(value)))
            detokenizer.truncate(place)
        pieces.append(Piece(detokenizer.append(token_id), _finite(logprobs[place]), top))
    return pieces


def _finite(value: float) -> float:
    return max(value, -9999.0)  # as OpenAI writes a probability of 0; JSON has no infinity
