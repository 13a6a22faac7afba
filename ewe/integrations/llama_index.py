"""Long-term memories as a memory block of LlamaIndex (`pip install 'ewe-engine[llama-index]'`)."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock

from ewe.config.config_evidence import SEARCH_TOP_K
from ewe.longterm.memory_api import Memory


class LongTermMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]  # no types where it is not installed
    """Brings the memories for the user's last message, as JSON, each with the veracity that the scorer gives it.

    learns: whether facts of the user's messages that leave the short-term memory are added.
    """

    name: str = "long_term_memories"
    memory: Memory
    top_k: int = SEARCH_TOP_K
    learns: bool = True

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = _told(messages or ())
        return await asyncio.to_thread(self._recalled, asked[-1]["content"]) if asked else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if self.learns and (told := _told(messages)):
            await asyncio.to_thread(self.memory.add, told)

    def _recalled(self, query: str) -> str:
        used = self.memory.search(query, self.top_k)
        rows = [{"memory": one.content, "veracity": round(float(one.belief), 2)} for one in used]
        return json.dumps(rows, ensure_ascii=False) if rows else ""


def _told(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    """What the user says in some messages."""
    said = (message.content for message in messages if message.role == MessageRole.USER)
    return [{"role": "user", "content": text} for text in said if text]
