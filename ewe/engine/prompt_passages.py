"""The question's passages inside the prompt: the model reads them together, and units hold what comes later."""

from __future__ import annotations

from collections.abc import Sequence as Batch
from contextlib import suppress
from dataclasses import dataclass, replace

from ewe.engine.input_processor import InputProcessor
from ewe.engine.prompt_maker import PromptMaker
from ewe.engine.request import TokenizedRequest
from ewe.engine.sequence import Sequence
from ewe.errors import PromptTooLongError
from ewe.placement import MARK, PlacedPrompt
from ewe.types import Passage, ScoredPassage


@dataclass(frozen=True, slots=True)
class PromptPassages:
    """Puts passages into the prompts of sequences of which nothing has been computed yet."""

    prompts: PromptMaker
    input_processor: InputProcessor

    def fits(self, sequence: Sequence) -> bool:
        """Whether the request's prompt has a place for memory inside."""
        prompt = sequence.request.asked.prompt
        is_marked = isinstance(prompt, str) and MARK in prompt and self.prompts.is_marked
        return isinstance(prompt, PlacedPrompt) or is_marked

    def place(self, sequence: Sequence, hits: Batch[ScoredPassage]) -> None:
        """Rewrites the prompt of a sequence, and of its siblings, with the passages at its memory mark, the best first.

        The last ones are left out where they leave the answer less room than it may have, or than half of the context.
        What is not to be believed at all (veracity 0) is left out, too.
        """
        passages = tuple(hit.passage for hit in hits if hit.passage.veracity != 0)
        params, limits = sequence.request.params, self.input_processor.limits
        least = min(params.max_tokens, limits.max_model_len // 2)
        while passages:
            with suppress(PromptTooLongError):
                request = self._with_passages(sequence.request, passages)
                if request.max_tokens >= least:
                    self._set(sequence, request, passages)
                    return
            passages = passages[:-1]

    def _with_passages(self, request: TokenizedRequest, passages: Batch[Passage]) -> TokenizedRequest:
        asked = request.asked
        assert isinstance(asked.prompt, str | PlacedPrompt)
        prompt = self.prompts.own(asked.prompt, passages)
        num_documents = len(asked.documents or ())
        tokenized = self.input_processor.tokenize(request.id, replace(asked, prompt=prompt), num_documents)
        return replace(
            request,
            prefix_ids=tokenized.prefix_ids,
            prompt_ids=tokenized.prompt_ids,
            start_position=tokenized.start_position,
            max_tokens=tokenized.max_tokens,
        )

    def _set(self, sequence: Sequence, request: TokenizedRequest, passages: Batch[Passage]) -> None:
        for one in (sequence, *sequence.siblings):
            one.request = request
            one.prompt_passages = frozenset(passage.id for passage in passages)
            one.sources.update({passage.id: passage for passage in passages})
        sequence.record(
            "prompt", passages=[passage.id for passage in passages], num_prompt_tokens=request.num_prompt_tokens
        )
