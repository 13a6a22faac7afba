"""Requests as token ids: what can be checked of a request without the engine that will run it, by facts about it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt, split_at_mark
from ewe.engine.request import Request, TokenizedRequest, check_closed_world, check_unicode, has_grammar, listed_prompt
from ewe.engine.units.control_tokens import PlainEncoder
from ewe.errors import InvalidRequestError, PromptTooLongError
from ewe.text.control_marks import MARK, unmarked
from ewe.types import MemoryOptions
from ewe.types.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request must fit into: model length and pool size in tokens, ids below vocab_size.

    num_blocks: of the KV pool, with block_size tokens each. adapters: those that it may name, and the tokens that end
    an answer of each. uses_memory: whether requests have a memory even without documents (a retriever or verifier is
    there). copies: how many passages each may copy from, at most. unchecked: why sentences are not checked before they
    stand; empty if they are. engine: what is on, for the trace: "auto" is something else on another machine, and an
    object that was given stands in no settings.
    """

    max_model_len: int
    vocab_size: int
    num_blocks: int
    block_size: int
    adapters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    uses_memory: bool = False
    copies: int = 0
    unchecked: str = ""
    engine: str = ""


@dataclass(eq=False)
class RequestTokenizer:
    """Checks and tokenises the requests of one engine, in any process that has the engine's tokenizer."""

    config: Config
    tokenizer: Any | None
    limits: Limits

    def prepare(self, request_id: str, request: Request) -> TokenizedRequest:
        """The request as it runs, its documents as passages.

        Raises InvalidRequestError for an empty or over-long prompt, ids outside the vocabulary, documents that cannot
        be used, or memories where none are kept.
        """
        check_closed_world(request.closed_world, self.limits.unchecked)
        request = self._with_adapter(request)
        passages = request.passages(self.config.memory.retrieval_units, self.tokenizer is not None)
        return self.tokenize(request_id, replace(request, documents=passages), len(passages))

    def _with_adapter(self, request: Request) -> Request:
        """The request, ended by what ends its adapter's answers, too; raises InvalidRequestError for an unknown one."""
        known, params = self.limits.adapters, request.params
        if request.adapter and request.adapter not in known:
            here = ", ".join(known) or "none, see model.adapters"
            raise InvalidRequestError(f"there is no adapter {request.adapter!r}; there are: {here}")
        ends = () if params.ignore_eos else known.get(request.adapter, ())
        return (
            replace(request, params=replace(params, stop_token_ids=params.stop_token_ids + ends)) if ends else request
        )

    def tokenize(self, request_id: str, request: Request, num_documents: int) -> TokenizedRequest:
        """The request as it runs; raises InvalidRequestError as `prepare` does."""
        params, uses_memory = request.params, self.limits.uses_memory and not request.is_plain
        has_memory = uses_memory or num_documents > 0
        text, prefix_ids, prompt_ids = self._prompt(request, has_memory)
        if request.prefill and has_grammar(request.tools, params.json_schema, params.grammar):
            raise InvalidRequestError(
                "messages: the last one begins the answer, and one that must be JSON, a call or follow a grammar has "
                "to do so from its first word: leave one of both out"
            )
        self.check_ids("logit_bias", params.logit_bias)
        self.check_ids("stop_token_ids", params.stop_token_ids)
        self.check_ids("label_token_ids", request.label_token_ids)
        if request.label_token_ids and params.n > 1:
            raise InvalidRequestError(f"label_token_ids: a prompt is scored once: set n to 1, got {params.n}")
        if prefix_ids and params.prompt_logprobs is not None:
            raise InvalidRequestError(
                "prompt_logprobs: a prompt with its memory inside is not scored: set memory.placement to bare"
            )
        gap = self.config.memory.unit_tokens if has_memory else 0
        # A refresh holds the old units until the new ones are encoded.
        num_units = 2 * self.config.memory.num_units if uses_memory else num_documents
        original = request.question if request.question.strip() else text
        return TokenizedRequest(
            id=request_id,
            original=request,
            prompt=text,
            question=f"{request.topic}\n{original}" if request.topic else original,
            prefix_ids=prefix_ids,
            prompt_ids=prompt_ids,
            seed=params.seed if params.seed is not None else (0 if params.temperature == 0 else secrets.randbits(63)),
            start_position=len(prefix_ids) + gap,
            max_tokens=self._fit(len(prefix_ids), len(prompt_ids), params, gap, num_units),
            memory=self._memory_options(request.memory),
        )

    def _memory_options(self, memory: MemoryOptions | None) -> MemoryOptions:
        settings = self.config.longterm
        if memory is not None and settings.path is None:
            raise InvalidRequestError("memory: this engine keeps no memories: set longterm.path to a folder for them")
        return memory or MemoryOptions(settings.user, settings.agent)

    def _prompt(self, request: Request, has_memory: bool) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """The prompt's text, the tokens up to its memory and those after it.

        The former are none where units are bare: for prompts without a place for memory. Without memory they are those
        of what the prompt shares with others.
        """
        prompt, add_special_tokens = request.prompt, request.add_special_tokens
        if isinstance(prompt, str) and self.config.memory.placement == "in_prompt":
            prompt = split_at_mark(prompt)
        if isinstance(prompt, PlacedPrompt) and not has_memory:
            prompt = prompt.text
        if not isinstance(prompt, PlacedPrompt):
            ids = self._prompt_ids(prompt, add_special_tokens)
            cut = 0 if has_memory else self._num_shared(request, ids)
            return unmarked(prompt) if isinstance(prompt, str) else self._decode(ids), ids[:cut], ids[cut:]
        if not prompt.after.strip():
            raise InvalidRequestError("prompt: nothing follows the memory: give it some text there")
        prefix_ids = tuple(self.encode(prompt.before, add_special_tokens))
        self.check_ids("prompt", prefix_ids)
        return (
            unmarked(prompt.before + prompt.after),
            prefix_ids,
            self._prompt_ids(prompt.after, add_special_tokens=False),
        )

    def _num_shared(self, request: Request, ids: tuple[int, ...]) -> int:
        """How many of a prompt's tokens, but for its last, are those of what it shares with others."""
        if not request.shared_prefix:
            return 0
        pairs = zip(ids[:-1], self.encode(request.shared_prefix, request.add_special_tokens), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _prompt_ids(self, prompt: str | Sequence[int], add_special_tokens: bool) -> tuple[int, ...]:
        if isinstance(prompt, str):
            if not prompt.strip():
                raise InvalidRequestError("prompt: this is empty: give it some text")
            ids = self.encode(prompt, add_special_tokens)
        else:
            ids = listed_prompt(prompt)
        if not ids:
            raise InvalidRequestError("prompt: this is empty: give at least one token")
        self.check_ids("prompt", ids)
        return tuple(ids)

    def least_room(self, params: SamplingParams) -> int:
        """How many tokens passages in a prompt leave the answer: those it may have, or half of the context."""
        return min(params.max_tokens, self.limits.max_model_len // 2)

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """The tokens of a text as a prompt has them: with the control tokens that it spells without marks.

        Raises InvalidRequestError for a model without a tokenizer.
        """
        if self.tokenizer is None:
            raise InvalidRequestError("prompt: this model has no tokenizer: give token ids")
        check_unicode("prompt:", text)
        if MARK in text:
            prefix = self._encoder.prefix if add_special_tokens else ()
            ids = [*prefix, *self._encoder.encode_marked(text)]
        else:
            ids = list(self.tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"])
        bos = self.tokenizer.bos_token_id
        if add_special_tokens and len(ids) > 1 and ids[0] == ids[1] == bos:
            del ids[0]  # the prompt spelled out the BOS that the tokenizer adds
        return ids

    @cached_property
    def _encoder(self) -> PlainEncoder:
        return PlainEncoder(self.tokenizer)

    def check_ids(self, where: str, ids: Iterable[int]) -> None:
        """Raises InvalidRequestError for what is no token of the model; where: what holds the ids."""
        for token_id in ids:
            if not isinstance(token_id, int) or not 0 <= token_id < self.limits.vocab_size:
                raise InvalidRequestError(f"{where}: {token_id!r} is not a token id in [0, {self.limits.vocab_size})")

    def _fit(self, prefix: int, rest: int, params: SamplingParams, gap: int, num_units: int) -> int:
        """How many tokens may be generated; raises if the prompt leaves no room for any.

        prefix, rest: tokens of the prompt up to the memory and after it; gap: positions between them; num_units: most
        that it holds at once.
        """
        memory, size = self.config.memory, self.limits.block_size
        prompt = prefix + rest
        room = self.limits.max_model_len - gap
        if prompt >= room:
            raise PromptTooLongError(
                f"the prompt has {prompt} tokens; model.max_model_len {self.limits.max_model_len}"
                + (f" less memory.unit_tokens {gap}" if gap else "")
                + f" leaves room for {max(room - 1, 0)}"
            )
        blocks = (num_units + self.limits.copies) * math.ceil(memory.unit_tokens / size) + math.ceil(prefix / size)
        blocks += self.config.feedback.wordings > 1  # the last one of a text that waits for wordings
        pool_room = (self.limits.num_blocks - 1 - blocks) * size
        if rest >= pool_room:
            raise PromptTooLongError(
                f"the prompt has {prompt} tokens, and the KV pool leaves room for {max(pool_room + prefix - 1, 0)}: "
                "raise cache.num_blocks or cache.memory_gib, or lower memory.unit_tokens"
            )
        return min(params.max_tokens, room - prompt, pool_room - rest)

    def _decode(self, ids: tuple[int, ...]) -> str:
        return "" if self.tokenizer is None else str(self.tokenizer.decode(list(ids), skip_special_tokens=True))
