"""What streamed conversations and streamed texts have in common: their chunks, from the first to the counts of tokens.

Owns: the order of the chunks and what each holds beside its choices. Knows runs; a choice's own form is its endpoint's.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from ewe.report.jsonable import jsonable
from ewe.server.answers import check_finished, ewe_result, usage
from ewe.server.run import Run, RunEvent
from ewe.server.service import Service
from ewe.server.streaming import record
from ewe.server.version import FINGERPRINT
from ewe.server.wire_sampling import SamplingRequest
from ewe.types import Generation


class ChunkedAnswer(ABC):
    """The answer to one request; chunk_object: what a chunk calls itself, id_prefix: how the answer's id begins."""

    def __init__(self, service: Service, run: Run, body: SamplingRequest, id_prefix: str, chunk_object: str) -> None:
        self._service = service
        self._run = run
        self._wants_usage = body.wants_usage
        self._chunk_object = chunk_object
        self._head = {
            "id": f"{id_prefix}-{uuid.uuid4().hex}", "created": int(time.time()), "model": service.model_name,
        }  # fmt: skip

    @abstractmethod
    def _text_choice(self, index: int, text: str) -> dict[str, Any]:
        """A choice of a chunk that carries final text."""

    @abstractmethod
    async def _last_choice(self, index: int, generation: Generation) -> dict[str, Any]:
        """A choice of the chunk that ends it."""

    async def chunks(self) -> AsyncIterator[str]:
        """The records of the stream, but for the last that says that it is done."""
        async for item in self._run.events():
            if item.event.kind == "text":
                yield self._chunk([self._text_choice(item.choice, item.event.data["text"])])
            elif item.event.kind == "finish":
                yield await self._last_chunk(item)
            else:
                yield self._chunk([], ewe=_live_event(item))
        if self._wants_usage:
            yield self._chunk([], usage=usage(self._run.generations).model_dump())

    async def _last_chunk(self, item: RunEvent) -> str:
        """A choice's end; that of the last choice also tells what the engine knows."""
        generation: Generation = item.event.generation
        check_finished(generation)
        choice = await self._last_choice(item.choice, generation)
        more = {"ewe": ewe_result(self._run.generations).model_dump()} if self._run.is_finished else {}
        return self._chunk([choice], **more)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> str:
        empty = {"usage": None} if self._wants_usage else {}
        fixed = {"object": self._chunk_object, "system_fingerprint": FINGERPRINT}
        return record({**self._head, **fixed, "choices": choices, **empty, **more})


def _live_event(item: RunEvent) -> dict[str, Any]:
    """What a reader who asked for events is told of one."""
    return {"event": item.event.kind, "choice": item.choice, "data": jsonable(item.event.data)}
