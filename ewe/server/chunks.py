"""What streamed conversations and streamed texts have in common: chunks, from the first to the token counts."""

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ewe.report.jsonable import jsonable
from ewe.server import FINGERPRINT
from ewe.server.answers import check_finished, counted, ewe_result, usage
from ewe.server.engine_service import Service
from ewe.server.errors import RefusedError
from ewe.server.run import Run, RunEvent
from ewe.server.schemas.common import AnswerModel
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.server.stream_parts import Part, StreamParts
from ewe.server.streaming import RecordForm, comment, record
from ewe.types import Generation


class ChunkedAnswer(ABC):
    """The answer to one request; chunk_object: what a chunk calls itself, id_prefix: how the answer's id begins."""

    form: type[AnswerModel]
    id_prefix: str
    chunk_object: str

    def __init__(self, service: Service, run: Run, body: SamplingRequest) -> None:
        self._service = service
        self._run = run
        self._parts = StreamParts(body.ewe)
        self._wants_usage = body.wants_usage
        self._head = {
            "id": f"{self.id_prefix}-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": service.check_model(body.model),
        }
        self._unfinished = run.num_choices
        self._offsets = [0] * run.num_choices  # where each answer begins in the text of its choice
        # By choice the tokens written and taken back so far, where every chunk is to say them.
        self._counts: dict[int, tuple[int, int]] | None = {} if body.wants_usage_so_far else None

    @abstractmethod
    def _text_choice(self, index: int, text: str) -> dict[str, Any]:
        """A choice of a chunk that carries text."""

    @abstractmethod
    async def _last_choice(self, index: int, generation: Generation) -> dict[str, Any]:
        """A choice of the chunk that ends it."""

    @abstractmethod
    async def _whole_choice(self, index: int, generation: Generation) -> AnswerModel:
        """A choice of the whole answer."""

    async def whole(self, generations: Sequence[Generation]) -> AnswerModel:
        """All choices at once."""
        return self.form(
            **self._head,
            choices=[await self._whole_choice(index, generation) for index, generation in enumerate(generations)],
            usage=usage(generations),
            system_fingerprint=FINGERPRINT,
            ewe=ewe_result(generations, self._offsets),
        )

    def begin(self) -> str:
        """The chunks before the first text."""
        return ""

    async def tell(self, item: RunEvent) -> str:
        """The chunk of an event; raises RefusedError for the end of an answer that came to nothing."""
        if item.event.kind == "finish":
            return await self._last_chunk(item)
        if item.event.kind == "text" and self._counts is not None:
            data = item.event.data
            self._counts[item.choice] = data["num_tokens"], data["num_discarded"]
        return "".join([self._record_of(item.choice, part) for part in self._parts.of(item)])

    def end(self) -> str:
        """The chunk of token counts, if it was asked for."""
        return self._chunk([], usage=usage(self._run.generations).model_dump()) if self._wants_usage else ""

    def fail(self, error: RefusedError) -> str:
        """The record that says why the stream breaks off."""
        return record(error.body)

    @cached_property
    def _text_forms(self) -> list[RecordForm]:
        choices = (self._text_choice(index, RecordForm.HOLE) for index in range(self._run.num_choices))
        return [RecordForm(self._data([choice])) for choice in choices]

    @cached_property
    def _live_form(self) -> RecordForm:
        return RecordForm(self._data([], ewe=RecordForm.HOLE))

    def _record_of(self, choice: int, part: Part) -> str:
        """The chunk of text or of an event, or a comment; the forms serve chunks that do not say the counts of then."""
        if part.comment:
            return comment(part.comment)
        if part.event:
            told = {"event": part.event, "choice": choice, "data": jsonable(part.data)}
            return self._live_form.fill(told) if self._counts is None else self._chunk([], ewe=told)
        if self._counts is None:
            return self._text_forms[choice].fill(part.delta)
        return self._chunk([self._text_choice(choice, part.delta)])

    async def _last_chunk(self, item: RunEvent) -> str:
        """A choice's end; that of the last choice also tells what the engine knows."""
        generation: Generation = item.event.generation
        check_finished(generation, self._run.own_deadline)
        self._unfinished -= 1
        if self._counts is not None:
            kept, discarded = generation.stats.tokens_kept, generation.stats.tokens_discarded
            self._counts[item.choice] = kept + discarded, discarded
        choice = await self._last_choice(item.choice, generation)
        more = {} if self._unfinished else {"ewe": ewe_result(self._run.generations, self._offsets).model_dump()}
        return self._chunk([choice], **more)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> str:
        return record(self._data(choices, **more))

    def _data(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        counts = {"usage": self._usage_so_far()} if self._wants_usage else {}
        fixed = {"object": self.chunk_object, "system_fingerprint": FINGERPRINT}
        return {**self._head, **fixed, "choices": choices, **counts, **more}

    def _usage_so_far(self) -> dict[str, Any] | None:
        if self._counts is None:
            return None
        prompt = sum(sequence.request.num_prompt_tokens for sequence in self._run.sequences)
        written, discarded = (sum(counts) for counts in zip((0, 0), *self._counts.values(), strict=True))
        return counted(prompt, written, discarded).model_dump()
