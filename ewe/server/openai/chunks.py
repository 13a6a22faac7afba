"""What streamed conversations and streamed texts have in common: chunks, from the first to the token counts."""

import time
import uuid
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ewe.server import FINGERPRINT
from ewe.server.answering.answers import counted, usage
from ewe.server.answering.streaming import StreamedAnswer
from ewe.server.engine_client.bridge import Run, RunEvent
from ewe.server.engine_service import Service
from ewe.server.http.error_responses import RefusedError
from ewe.server.http.sse import record
from ewe.server.schemas.common import AnswerModel, Usage
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.text.tool_calls.use import ToolUse
from ewe.types import Generation


class ChunkedAnswer(StreamedAnswer):
    """The answer to one request; chunk_object: what a chunk calls itself, id_prefix: how the answer's id begins."""

    form: type[AnswerModel]
    id_prefix: str
    chunk_object: str

    def __init__(self, service: Service, run: Run, body: SamplingRequest, tools: ToolUse | None = None) -> None:
        super().__init__(service, run, body, tools)
        self._wants_usage, self._wants_usage_so_far = body.wants_usage, body.wants_usage_so_far
        self._head = {
            "id": f"{self.id_prefix}-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": service.check_model(body.model),
            "system_fingerprint": FINGERPRINT,
        }
        self._unfinished = run.num_choices
        self._offsets = [0] * run.num_choices  # where each answer begins in the text of its choice
        self._counts: dict[int, tuple[int, int]] = {}  # by choice the tokens written and taken back so far
        self._ended: list[Generation] = []

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
            ewe=await self._result(generations, self._offsets),
        )

    async def tell(self, item: RunEvent) -> str:
        """The chunks of an event; raises RefusedError for the end of an answer that came to nothing."""
        if item.event.kind == "text":
            self._counts[item.choice] = item.event.data["num_tokens"], item.event.data["num_discarded"]
        return await super().tell(item)

    def end(self) -> str:
        """The chunk of token counts, if it was asked for."""
        return self._chunk([], usage=usage(self._run.generations)) if self._wants_usage else ""

    def fail(self, error: RefusedError) -> str:
        """The record that says why the stream breaks off."""
        return record(error.body)

    def _event(self, choice: int, kind: str, data: Any) -> str:
        return self._chunk([], ewe={"event": kind, "choice": choice, "data": data})

    async def _finish(self, choice: int, generation: Generation) -> str:
        """A choice's end; that of the last choice also tells what the engine knows."""
        self._unfinished -= 1
        kept, discarded = generation.stats.tokens_kept, generation.stats.tokens_discarded
        self._counts[choice] = kept + discarded, discarded
        self._ended.append(generation)
        more = {} if self._unfinished else {"ewe": await self._result(self._run.generations, self._offsets)}
        return self._chunk([await self._last_choice(choice, generation)], **more)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> str:
        counts = {"usage": self._usage_so_far()} if self._wants_usage else {}
        return record({**self._head, "object": self.chunk_object, "choices": choices, **counts, **more})

    def _usage_so_far(self) -> Usage | None:
        if not self._wants_usage_so_far:
            return None
        if len(self._ended) == self._run.num_choices:
            return usage(self._ended)
        prompt = sum(opened.request.num_prompt_tokens for opened in self._run.opened)
        written, discarded = (sum(counts) for counts in zip((0, 0), *self._counts.values(), strict=True))
        return counted(prompt, written, discarded)
