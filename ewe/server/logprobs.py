"""Log-probabilities on the wire: tokens as pieces of text, for chat and for text completions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ewe.engine.detokenizer import Detokenizer
from ewe.server.schemas.chat_schemas import ChatLogprobs, TokenLogprob, TopLogprob
from ewe.server.schemas.completion_schemas import CompletionLogprobs
from ewe.types import Generation

_INCOMPLETE = "\ufffd"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token's text where it stands, its natural-log probability, and the likeliest tokens at this place."""

    text: str
    logprob: float
    top: list[tuple[str, float]]


def chat_logprobs(tokenizer: Any, prompt_ids: Sequence[int], generation: Generation) -> ChatLogprobs:
    """One entry per token of the answer."""
    content = [
        TokenLogprob(
            token=piece.text,
            logprob=piece.logprob,
            bytes=_bytes(piece.text),
            top_logprobs=[TopLogprob(token=text, logprob=value, bytes=_bytes(text)) for text, value in piece.top],
        )
        for piece in _pieces(tokenizer, prompt_ids, generation)
    ]
    return ChatLogprobs(content=content)


def completion_logprobs(
    tokenizer: Any, prompt_ids: Sequence[int], generation: Generation, with_top: bool, with_prompt: bool = False
) -> CompletionLogprobs:
    """The same as parallel lists; of alternatives with equal texts the likeliest counts.

    with_prompt: whether the prompt's tokens, which the engine was asked to score, come first.
    """
    pieces = _pieces(tokenizer, prompt_ids, generation)
    if with_prompt:
        pieces = _prompt_pieces(tokenizer, prompt_ids, generation) + pieces
    offsets, position = [], 0
    for piece in pieces:
        offsets.append(position)
        position += len(piece.text)
    values: list[float | None] = [piece.logprob for piece in pieces]
    tops: list[dict[str, float] | None] = [dict(reversed(piece.top)) for piece in pieces]
    if with_prompt:  # nothing foretells its first token
        values[0] = tops[0] = None
    return CompletionLogprobs(
        text_offset=offsets,
        token_logprobs=values,
        tokens=[piece.text for piece in pieces],
        top_logprobs=tops if with_top else None,
    )


def _pieces(tokenizer: Any, prompt_ids: Sequence[int], generation: Generation) -> list[_Piece]:
    """The tokens with their texts; one that is part of a character has none, the one that completes it has all."""
    tops = generation.top_logprobs or ({},) * len(generation.token_ids)
    return _told(Detokenizer(tokenizer, prompt_ids), generation.token_ids, generation.logprobs, tops)


def _prompt_pieces(tokenizer: Any, prompt_ids: Sequence[int], generation: Generation) -> list[_Piece]:
    """The same of the prompt; its first token has no probability, and 0 stands for it."""
    tops = ({}, *generation.prompt_top_logprobs) if generation.prompt_top_logprobs else ({},) * len(prompt_ids)
    return _told(Detokenizer(tokenizer, ()), prompt_ids, (0.0, *generation.prompt_logprobs), tops)


def _told(
    detokenizer: Detokenizer, token_ids: Sequence[int], logprobs: Sequence[float], tops: Sequence[Mapping[int, float]]
) -> list[_Piece]:
    found = []
    for place, token_id in enumerate(token_ids):
        top = []
        for other, value in sorted(tops[place].items(), key=lambda item: -item[1]):
            top.append((detokenizer.append(other) or detokenizer.flush(), _finite(value)))
            detokenizer.truncate(place)
        found.append(_Piece(detokenizer.append(token_id), _finite(logprobs[place]), top))
    return found


def _finite(value: float) -> float:
    return max(value, -9999.0)  # as OpenAI writes a probability of 0; JSON has no infinity


def _bytes(text: str) -> list[int] | None:
    return None if _INCOMPLETE in text else list(text.encode())
