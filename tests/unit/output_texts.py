"""Output texts of given pieces, for the tests of what the engine has written."""

from __future__ import annotations

from engine_tokenizers import PieceTokenizer

from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.sampling.sampler import Token
from ewe.text.sentences import SentenceSplitter

SPLITTER = SentenceSplitter()


def token(token_id: int) -> Token:
    return Token(token_id, logprob=-1.0 - token_id / 1000, entropy=token_id / 7)


def pieces(*parts: str, stop: tuple[str, ...] = (), min_tokens: int = 0) -> OutputText:
    """A draft that has been given these pieces, one token each."""
    draft = OutputText(PieceTokenizer(parts), SPLITTER, [], stop, min_tokens)
    for index in range(len(parts)):
        draft.append(token(index))
    return draft


def sentences(draft: OutputText) -> list[str]:
    return [draft.text[span.start : span.end] for span in draft.sentences]
