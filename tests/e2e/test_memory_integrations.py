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


MOVED = [("2023-05-01", "I live in Berlin."), ("2025-05-01", "I moved to Bergen.")]


@pytest.fixture
def moved(store: MemoryStore) -> ewe.Memory:
    memory = ewe.Memory(MemoryService(store), user="eva")
    for at, text in MOVED:
        memory.add(text, observed_at=at)
    return memory


def test_langchain_answers_for_a_time_that_is_named_or_given(moved: ewe.Memory) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from ewe.integrations.langchain import MemoryRetriever

    def found(query: str, **options: str) -> list[str]:
        return [document.page_content for document in MemoryRetriever(memory=moved, **options).invoke(query)]

    assert found("Where did I live in 2024?") == ["I live in Berlin."]
    assert found("Where do I live?", as_of="2024-06-01") == ["I live in Berlin."]
    assert found("Where do I live?") == ["I moved to Bergen."]


def test_llama_index_answers_for_a_time_and_keeps_when_something_was_said(moved: ewe.Memory) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.llms import ChatMessage

    from ewe.integrations.llama_index import LongTermMemoryBlock

    def recalled(query: str, **options: str) -> str:
        return asyncio.run(LongTermMemoryBlock(memory=moved, **options).aget([ChatMessage(query)]))

    assert "Berlin" in recalled("Where did I live in 2024?")
    assert "Bergen" not in recalled("Where do I live?", as_of="2024-06-01")
    said = ChatMessage("I own a red boat.", additional_kwargs={"created_at": "2021-03-01"})
    asyncio.run(LongTermMemoryBlock(memory=moved).aput([said]))
    [boat] = (one for one in moved.get_all() if "boat" in one.content)
    assert boat.observed_at == 1614556800.0


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
