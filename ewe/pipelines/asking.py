"""What the model reads when a pipeline asks, and how its text is drawn: each with its own random stream."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ewe.config import Config
from ewe.errors import InvalidRequestError
from ewe.memory.unit_text import UnitTokenizer
from ewe.pipelines.steps import Ask
from ewe.placement import MARK, PROMPT_MARK, PlacedPrompt, split_at_mark
from ewe.sampling import SamplingParams
from ewe.tool_calls.template import ChatTemplate
from ewe.types import Passage


class PromptMaker:
    """Prompts of one engine. tokenizer: the model's, with a chat template or without."""

    def __init__(self, tokenizer: Any, units: UnitTokenizer, config: Config) -> None:
        self.has_template = getattr(tokenizer, "chat_template", None) is not None
        self._template = ChatTemplate(tokenizer, config.model.name)
        self._units = units.in_prompt
        self._frame = config.memory.frame
        self._is_marked = config.memory.placement == "in_prompt"

    def own(
        self, prompt: str | PlacedPrompt, passages: Sequence[Passage], begin: str, frame: str = ""
    ) -> PlacedPrompt | str:
        """The request's prompt with passages at its memory mark, or framed if it has none, and the text so far."""
        if frame:
            begin, passages = begin + frame.replace("{passages}", self._listed(passages).strip()), ()
        placed = split_at_mark(prompt) if isinstance(prompt, str) and self._is_marked else prompt
        if isinstance(placed, str):
            text = self._framed(placed, passages) + begin
            return PlacedPrompt(text, "", text) if self._is_marked else text  # a passage may hold a mark, too
        if not passages:
            return PlacedPrompt(placed.text + begin, placed.before, placed.after + begin)
        after = self._listed(passages) + placed.after + begin
        return PlacedPrompt(placed.before + after, placed.before, after)

    def turn(self, text: str, passages: Sequence[Passage], begin: str) -> PlacedPrompt:
        """A prompt that says `text` to the model, through its chat template if it has one; it then holds its BOS."""
        words = self._framed(text, passages)
        whole = (self._template.render([{"role": "user", "content": words}]) if self.has_template else words) + begin
        return PlacedPrompt(whole, "", whole)

    def shared(self, prompt: PlacedPrompt | str, passages: Sequence[Passage], words: str) -> str:
        """A prompt up to the end of these words in it, or of its passages without any; "" where they are not in it."""
        text, last = prompt if isinstance(prompt, str) else prompt.text, words or self._listed(passages).strip()
        return text[: text.find(last) + len(last)] if last in text else ""

    def _framed(self, text: str, passages: Sequence[Passage]) -> str:
        if not passages:
            return text
        before, _, rest = self._frame.partition(MARK)
        between, _, after = rest.partition(PROMPT_MARK)
        return f"{before}{self._listed(passages)}{between}{text}{after}"

    def _listed(self, passages: Sequence[Passage]) -> str:
        """Passages as units say them: cut as units are, without control tokens, a line each."""
        texts = []
        for passage in passages:
            with suppress(InvalidRequestError):  # a passage without text
                texts.append(self._units.prompt_text(passage))
        return "".join(texts)


def seed_of(seed: int, index: int, number: int) -> int:
    """The seed, 63 bits, of the number-th text of the index-th answer of a request with this seed."""
    digest = hashlib.blake2b(f"{seed} {index} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def answer_params(own: SamplingParams, ask: Ask, num_written: int, seed: int) -> SamplingParams | None:
    """For a text that is to be the answer, or the rest of it after num_written tokens; None if it is full already."""
    left = own.max_tokens - num_written
    if left <= 0:
        return None
    limit = left if ask.max_tokens is None else min(ask.max_tokens, left)
    wanted = [number for number in (own.logprobs, ask.top_logprobs or None) if number is not None]
    return replace(
        own,
        n=1,
        seed=seed,
        max_tokens=limit,
        min_tokens=min(max(own.min_tokens - num_written, 0), limit),
        logprobs=max(wanted, default=None),
    )


def inner_params(own: SamplingParams, ask: Ask, seed: int) -> SamplingParams:
    """For a text that the reader does not get: no stops, biases, penalties or schema of the answer."""
    return SamplingParams(
        max_tokens=ask.max_tokens or own.max_tokens,
        temperature=own.temperature,
        top_p=own.top_p,
        top_k=own.top_k,
        min_p=own.min_p,
        seed=seed,
        logprobs=ask.top_logprobs or None,
        deadline_s=own.deadline_s,
    )
