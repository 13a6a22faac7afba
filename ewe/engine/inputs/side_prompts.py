"""The sequences of texts that a policy asks for: their prompts, and how they are drawn, each with its own stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.inputs.input_processor import InputProcessor
from ewe.engine.inputs.prompt_maker import PromptMaker
from ewe.engine.inputs.prompt_passages import fitting
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.request import Request
from ewe.engine.sequence import Sequence
from ewe.engine.side_texts import Ask
from ewe.errors import InvalidRequestError, PromptTooLongError
from ewe.types import Passage
from ewe.types.sampling_params import SamplingParams


@dataclass(eq=False)
class SidePrompts:
    """Builds the sequences of one engine that policies ask for."""

    input_processor: InputProcessor
    pool: KVPool

    @cached_property
    def prompts(self) -> PromptMaker:
        """Writes the prompts."""
        processor, units = self.input_processor, self.input_processor.memory_manager.unit_tokenizer
        assert units is not None, "an engine whose policy asks for texts has a tokenizer"
        return PromptMaker(processor.tokenizer, units, processor.config)

    def build(self, parent: Sequence, ask: Ask, is_answer: bool = False) -> tuple[Sequence, tuple[Passage, ...]] | None:
        """The sequence of an Ask and the passages in its prompt; None if the answer that it goes on with is full.

        Passages may take no more than leaves the text its tokens, or half of the context if it may have more. Raises
        PromptTooLongError if the rest of the prompt is too long.
        """
        parent.policy.num_side_texts += 1
        seed = seed_of(parent.request.seed, parent.index, parent.policy.num_side_texts)
        own = parent.request.params
        num_written = len(self.encode(ask.begin)) if ask.begin else 0
        is_inner = ask.text is not None and not is_answer
        params = inner_params(own, ask, seed) if is_inner else answer_params(own, ask, num_written, seed)
        if params is None:
            return None
        build = partial(self._build, parent, ask, params, is_answer)
        least = self.input_processor.least_room(params)
        fitted = fitting(build, ask.passages, least, lambda sequence: sequence.request.max_tokens)
        if fitted is not None:
            return fitted
        with suppress(PromptTooLongError):
            return build(()), ()
        raise PromptTooLongError("a prompt of its own is too long for the model")

    def encode(self, text: str) -> list[int]:
        """The tokens of a text within an answer."""
        return self.input_processor.encode(text, add_special_tokens=False)

    @cached_property
    def text_of(self) -> Callable[[int], str]:
        """The text of one token by its id."""
        tokenizer: Any = self.input_processor.tokenizer
        return cache(lambda token_id: tokenizer.decode([token_id]))

    def token_id(self, name: str) -> int | None:
        """The token of this text, None if the model has none."""
        tokenizer: Any = self.input_processor.tokenizer
        token_id: int | None = tokenizer.convert_tokens_to_ids(name)
        return None if token_id == tokenizer.unk_token_id else token_id

    def _build(
        self, parent: Sequence, ask: Ask, params: SamplingParams, is_answer: bool, passages: tuple[Passage, ...]
    ) -> Sequence:
        original = parent.request.original
        assert isinstance(original.prompt, str | PlacedPrompt), "check_asking has refused it"
        if ask.text is None:
            base = original.prompt if is_answer else self.prompts.at_once(original.prompt)
            prompt = self.prompts.own(base, passages, ask.begin, ask.frame)
            special = original.add_special_tokens
        else:
            prompt, special = self.prompts.turn(ask.text, passages, ask.begin), not self.prompts.has_template
        inner = Request(
            prompt,
            params,
            [unit.passage for unit in parent.schedule.pending_units],
            add_special_tokens=special,
            salt=original.salt,
            adapter=original.adapter,
            shared_prefix="" if ask.shared is None else self.prompts.shared(prompt, passages, ask.shared),
            kept={token_id: name for name in ask.kept if (token_id := self.token_id(name)) is not None},
            is_plain=True,
            tenant=original.tenant,
            reasons=original.reasons,
            prefill=original.prefill if is_answer and ask.text is None else "",
        )
        sequence = self.input_processor.build(parent.request.id, inner)
        sequence.parent, sequence.arrived, sequence.sentence = parent, parent.arrived, ask.sentence
        sequence.wants_attention = ask.attention and self.pool.states is not None
        return sequence


def apart(request: Sequence) -> list[Sequence]:
    """The answers of a request, each of which asks on its own and has its documents."""
    answers, request.siblings = [request, *request.siblings], []
    for answer in answers:
        answer.policy.is_composed = True
    for answer in answers[1:]:
        answer.trace.extend(request.trace)
        answer.schedule.pending_units = list(request.schedule.pending_units)
    return answers


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
    counts = [number for number in (own.logprobs, ask.top_logprobs or None) if number is not None]
    return replace(
        own,
        n=1,
        temperature=_temperature(own, ask),
        seed=seed,
        max_tokens=limit,
        min_tokens=min(max(own.min_tokens - num_written, 0), limit),
        logprobs=max(counts, default=None),
    )


def inner_params(own: SamplingParams, ask: Ask, seed: int) -> SamplingParams:
    """For a text that the reader does not get: no stops, biases, penalties or schema of the answer."""
    return SamplingParams(
        max_tokens=ask.max_tokens or own.max_tokens,
        temperature=_temperature(own, ask),
        top_p=own.top_p,
        top_k=own.top_k,
        min_p=own.min_p,
        seed=seed,
        logprobs=ask.top_logprobs or None,
        deadline_s=own.deadline_s,
    )


def _temperature(own: SamplingParams, ask: Ask) -> float:
    """The temperature of an Ask, else the request's."""
    return own.temperature if ask.temperature is None else ask.temperature


def check_asking(request: Request, policy: str, composes: bool) -> None:
    """Raises InvalidRequestError for what a request cannot have under a policy that asks for further texts."""
    policy, params = f"policy {policy}", request.params
    if not isinstance(request.prompt, str | PlacedPrompt):
        raise InvalidRequestError(f"{policy} needs the prompt as a text, not as token ids")
    if request.tools is not None:
        raise InvalidRequestError(f"tools: {policy} asks the model several times and cannot call tools")
    if params.prompt_logprobs is not None:
        raise InvalidRequestError(f"prompt_logprobs: {policy} asks with prompts of its own: leave it out")
    if composes and request.prefill:
        raise InvalidRequestError(
            f"messages: {policy} puts the answer together from several texts and goes on with none of the assistant's"
        )
    for name in ("logprobs", "json_schema", "grammar") if composes else ():
        if getattr(params, name) is not None:
            raise InvalidRequestError(f"{name}: {policy} puts the answer together from several texts: leave it out")
