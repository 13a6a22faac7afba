"""The question's passages inside the prompt: the model reads them together, and units hold what comes later."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ewe.config import Config
from ewe.config.known_models import MEMORY_READER
from ewe.config.memory_mark import MARK, PlacedPrompt
from ewe.config.setting_names import AUTO
from ewe.engine.inputs.input_processor import InputProcessor
from ewe.engine.inputs.prompt_maker import PromptMaker
from ewe.engine.request import TokenizedRequest
from ewe.engine.sequence import Sequence
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.errors import PromptTooLongError
from ewe.types import Passage, ScoredPassage

_T = TypeVar("_T")


def fitting(
    build: Callable[[tuple[Passage, ...]], _T], passages: tuple[Passage, ...], least: int, room: Callable[[_T], int]
) -> tuple[_T, tuple[Passage, ...]] | None:
    """What `build` makes of as many passages, the best first, as leave the answer at least so many tokens, and these.

    room: how many an answer to what was built may have. None if even one is too many.
    """
    while passages:
        with suppress(PromptTooLongError):
            built = build(passages)
            if room(built) >= least:
                return built, passages
        passages = passages[:-1]
    return None


@dataclass(frozen=True, slots=True)
class PromptPassages:
    """Puts passages into the prompts of sequences of which nothing has been computed yet; most: so many at most."""

    prompts: PromptMaker
    input_processor: InputProcessor
    most: int

    def fits(self, sequence: Sequence) -> bool:
        """Whether the request's prompt has a place for memory inside."""
        prompt = sequence.request.original.prompt
        is_marked = isinstance(prompt, str) and MARK in prompt and self.prompts.is_marked
        return isinstance(prompt, PlacedPrompt) or is_marked

    def place(self, sequence: Sequence, hits: abc.Sequence[ScoredPassage]) -> None:
        """Rewrites the prompt of a sequence, and of its siblings, with the passages at its memory mark, the best first.

        The last ones are left out where they leave the answer less room than it may have, or than half of the context.
        What is not to be believed at all (veracity 0) is left out, too.
        """
        passages = tuple(hit.passage for hit in hits if hit.passage.veracity != 0)
        least = self.input_processor.least_room(sequence.request.params)
        build = partial(self._with_passages, sequence.request)
        fitted = fitting(build, passages, least, lambda request: request.max_tokens)
        if fitted is not None:
            self._set(sequence, *fitted)

    def _with_passages(self, request: TokenizedRequest, passages: abc.Sequence[Passage]) -> TokenizedRequest:
        original = request.original
        assert isinstance(original.prompt, str | PlacedPrompt)
        prompt = self.prompts.own(original.prompt, passages)
        num_documents = len(original.documents or ())
        tokenized = self.input_processor.tokenize(request.id, replace(original, prompt=prompt), num_documents)
        return replace(
            request,
            prefix_ids=tokenized.prefix_ids,
            prompt_ids=tokenized.prompt_ids,
            start_position=tokenized.start_position,
            max_tokens=tokenized.max_tokens,
        )

    def _set(self, sequence: Sequence, request: TokenizedRequest, passages: abc.Sequence[Passage]) -> None:
        for one in (sequence, *sequence.siblings):
            one.request = request
            one.prompt_passages = frozenset(passage.id for passage in passages)
            one.sources.update({passage.id: passage for passage in passages})
        sequence.record(
            "prompt", passages=[passage.id for passage in passages], num_prompt_tokens=request.num_prompt_tokens
        )


def open_prompt_passages(
    config: Config, units: UnitTokenizer | None, input_processor: InputProcessor
) -> PromptPassages | None:
    """What puts the question's passages into prompts; None where they become units."""
    place = config.memory.question_passages
    if place == AUTO:
        place = "units" if config.model.adapter == MEMORY_READER else "prompt"
    has_weights = config.memory.veracity_weighting != "off"  # which a prompt does not know
    if units is None or place == "units" or has_weights:
        return None
    prompts = PromptMaker(input_processor.tokenizer, units, config)
    return PromptPassages(prompts, input_processor, config.pipeline.passages)
