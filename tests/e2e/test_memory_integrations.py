"""Long-term memories in LangChain and LlamaIndex, through the libraries' own calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import ewe
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from tests.unit.longterm_parts import new_store

QUESTION = "Where does Ann live?"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        ann = MemorySource("user", "ann", 0.7)
        opened.add([Memory("home", "Ann lives in Lyon.", scope=Scope("ann"), source=ann, veracity=0.7)])
        opened.add([Memory("bobs", "Ann lives with Bob.", scope=Scope("bob"), veracity=0.9)])
        opened.add([Memory("rumour", "Ann lives on the moon.", veracity=0.1)])
        yield opened


def test_langchain_retrieves_what_a_user_may_see_and_use(store: MemoryStore) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.runnables import RunnableLambda

    from ewe.integrations.langchain import MemoryRetriever

    retriever = MemoryRetriever(memory=ewe.Memory(MemoryService(store), user="ann"))
    [found] = retriever.invoke(QUESTION)
    assert (found.id, found.page_content) == ("memory:ann//home", "Ann lives in Lyon.")
    assert (found.metadata["veracity"], found.metadata["source"]) == (0.7, "user:ann")
    chain = retriever | RunnableLambda(lambda documents: [document.page_content for document in documents])
    assert asyncio.run(chain.ainvoke(QUESTION)) == ["Ann lives in Lyon."]
    assert store.get(Scope("ann"), "home").recall_count == 2


def test_llama_index_brings_memories_and_takes_facts(store: MemoryStore) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import Memory as ChatMemory

    from ewe.integrations.llama_index import LongTermMemoryBlock

    anns = ewe.Memory(MemoryService(store), user="ann")
    block = LongTermMemoryBlock(memory=anns)
    memory = ChatMemory.from_defaults(
        session_id="s", token_limit=40, chat_history_token_ratio=0.5, token_flush_size=10, memory_blocks=[block]
    )

    async def talk() -> str:
        await memory.aput_messages([ChatMessage("I own a boat."), ChatMessage("Nice.", role="assistant")] * 4)
        await memory.aput(ChatMessage(QUESTION))
        return "".join(str(message.content) for message in await memory.aget())

    assert json.dumps({"memory": "Ann lives in Lyon.", "veracity": 0.7}) in asyncio.run(talk())
    assert "The user owns a boat." in {memory.content for memory in store.scan([Scope("ann")])}
    silent = LongTermMemoryBlock(memory=anns, learns=False)
    asyncio.run(silent.aput([ChatMessage("I own a red car.")]))
    assert asyncio.run(silent.aget([ChatMessage("Hi.", role="assistant")])) == ""
