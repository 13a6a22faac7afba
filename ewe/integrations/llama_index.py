"""Long-term memories as a memory block of LlamaIndex (`pip install 'ewe-engine[llama-index]'`)."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock

from ewe.config.config_evidence import SEARCH_TOP_K
from ewe.longterm.memory_api import Memory
from ewe.longterm.query_time import Time


class LongTermMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]  # no types where it is not installed
    """Brings the memories for the user's last message, as JSON, each with the veracity that the scorer gives it.

    learns: whether facts of the user's messages that leave the short-term memory are added, as said at the
    `created_at` in a message's `additional_kwargs` (now). as_of: as `Memory.search` takes it.
    """

    name: str = "long_term_memories"
    memory: Memory
    top_k: int = SEARCH_TOP_K
    learns: bool = True
    as_of: Time | None = None

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        spoken = _spoken(messages or ())
        return await asyncio.to_thread(self._recalled, spoken[-1]["content"]) if spoken else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if self.learns and (spoken := _spoken(messages)):
            await asyncio.to_thread(self.memory.add, spoken)

    def _recalled(self, query: str) -> str:
        used = self.memory.search(query, self.top_k, as_of=self.as_of)
        rows = [{"memory": one.content, "veracity": round(float(one.belief), 2)} for one in used]
        return json.dumps(rows, ensure_ascii=False) if rows else ""


def _spoken(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """What the user says in some messages, each with when it was said, where it tells that."""
    own = [message for message in messages if message.role == MessageRole.USER and message.content]
    times = [message.additional_kwargs.get("created_at") for message in own]
    return [
        {"role": "user", "content": one.content} | ({} if at is None else {"created_at": at})
        for one, at in zip(own, times, strict=True)
    ]
