"""Long-term memories as a memory block of LlamaIndex (`pip install 'ewe-engine[llama-index]'`)."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock

from ewe.longterm.extraction import ConversationMemory
from ewe.longterm.memory_search import visible
from ewe.longterm.records import Scope
from ewe.longterm.service import MemoryService


class LongTermMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]  # no types where it is not installed
    """Brings the memories for the user's last message, as JSON, each with the veracity that the scorer gives it.

    conversations: takes facts from the user's messages that leave the short-term memory; without it none are added.
    """

    name: str = "long_term_memories"
    service: MemoryService
    user: str = ""
    agent: str = ""
    top_k: int = 5
    conversations: ConversationMemory | None = None

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = _told(messages or ())
        return await asyncio.to_thread(self._recalled, asked[-1]) if asked else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if self.conversations is None:
            return
        for text in _told(messages):
            await asyncio.to_thread(self.conversations.remember, text, Scope(self.user, self.agent))

    def _recalled(self, query: str) -> str:
        used = self.service.search(query, visible(self.user, self.agent), self.top_k).used
        rows = [{"memory": one.memory.content, "veracity": round(float(one.belief), 2)} for one in used]
        return json.dumps(rows, ensure_ascii=False) if rows else ""


def _told(messages: Sequence[ChatMessage]) -> list[str]:
    """What the user says in some messages."""
    return [message.content for message in messages if message.role == MessageRole.USER and message.content]
