"""Facts from chats become memories: `remember` on requests of Python and the server, and `ewe memory remember`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from script_rig import scripted_llm
from typer.testing import CliRunner, Result

from ewe import LLM, MemoryOptions
from ewe.cli.main import app
from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.records import Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.types import Passage, Query, ScoredPassage
from tests.unit.longterm_parts import new_store

pytest.importorskip("llguidance", reason="llguidance is not installed")

SAID = "I moved to Lyon in 2019. What do you think?"
FACT = "The user moved to Lyon in 2019."
TALK = [{"role": "user", "content": SAID}]
WAIT_S = 60.0


def script(prompt: str, units: int) -> str:
    """Facts of the one thing that the tests say, or an answer."""
    if "note down" not in prompt:
        return "Nice."
    assert units == 0, "neither memories nor passages"
    return json.dumps({"facts": [FACT] if '"I moved to Lyon in 2019."' in prompt else []})


class Asked:
    """A retriever that finds one passage, and notes what it was asked."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def retrieve(self, queries: Sequence[Query | str], top_k: int) -> list[list[ScoredPassage]]:
        self.queries += [query if isinstance(query, str) else query.text for query in queries]
        return [[ScoredPassage(Passage("p", "Lyon is a city."), 1.0)] for _ in queries]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.default_memory.builtin_encoder_path", lambda: None)


@pytest.fixture
def datastore() -> Asked:
    return Asked()


class Agreeing:
    """A judge by whom everything follows from what was said, and nothing from another memory."""

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return np.array([(0.9, 0.05, 0.05) if ": " in pair[0] else (0.0, 0.0, 1.0) for pair in pairs]).reshape(-1, 3)


@pytest.fixture(params=["rules", "model"])
def llm(store: MemoryStore, datastore: Asked, request: pytest.FixtureRequest) -> Iterator[LLM]:
    service = MemoryService(store, judge=Agreeing())
    settings = {"longterm": {"extractor": request.param}}
    with scripted_llm("none", script, settings, datastore=datastore, longterm=service, verifier="none") as opened:
        yield opened


def contents(store: MemoryStore, user: str = "ann") -> list[str]:
    return [memory.content for memory in store.scan([Scope(user)])]


def test_facts_of_a_chat_are_kept_once(llm: LLM, store: MemoryStore, datastore: Asked) -> None:
    for _ in range(2):
        [answer] = llm.chat(TALK, memory=MemoryOptions("ann", remember=True))
        assert answer.text == "Nice."
        assert llm.memories.wait(WAIT_S)
    assert contents(store) == [FACT]
    assert llm.memories.counts["remembered"] == 1
    assert set(datastore.queries) == {SAID}, "the facts are taken without retrieval"


def test_what_is_told_last_is_kept_before_the_engine_ends(llm: LLM, store: MemoryStore) -> None:
    memories, is_closing = llm.memories, threading.Event()
    extract, wait = memories.conversations.extract, memories.wait

    def late(speaker: str, text: str) -> list[str]:
        assert is_closing.wait(WAIT_S)
        return extract(speaker, text)

    memories.conversations.extract = late
    llm.chat(TALK, memory=MemoryOptions("ann", remember=True))
    with mock.patch.object(memories, "wait", side_effect=lambda seconds: is_closing.set() or wait(seconds)):
        llm.close()
    assert contents(store) == [FACT]


def test_nothing_is_kept_unasked(llm: LLM, store: MemoryStore) -> None:
    llm.chat(TALK, memory=MemoryOptions("ann"))
    assert llm.memories.wait(WAIT_S)
    assert contents(store) == []
    with pytest.raises(InvalidRequestError, match="scope: 'none'"):
        MemoryOptions("ann", scope="none", remember=True)


def test_without_grammars_no_model_takes_facts(store: MemoryStore) -> None:
    settings, service = {"longterm": {"extractor": "model"}}, MemoryService(store)
    with (
        mock.patch("ewe.llm.find_spec", return_value=None),
        pytest.raises(ConfigError, match="needs a chat model"),
        scripted_llm("none", script, settings, longterm=service, verifier="none"),
    ):
        pass


def test_without_memories_nothing_is_kept() -> None:
    with scripted_llm("none", script) as llm, pytest.raises(InvalidRequestError, match=r"set longterm\.path"):
        llm.chat(TALK, memory=MemoryOptions("ann", remember=True))


def test_a_failure_reaches_no_answer(llm: LLM, store: MemoryStore) -> None:
    with mock.patch.object(llm.memories.conversations, "remember", side_effect=RuntimeError("broken")):
        [answer] = llm.chat(TALK, memory=MemoryOptions("ann", remember=True))
        assert llm.memories.wait(WAIT_S)
    assert (answer.text, llm.memories.counts["learning_failed"]) == ("Nice.", 1)


def test_the_server_keeps_facts_of_a_chat(llm: LLM, store: MemoryStore) -> None:
    testclient = pytest.importorskip("fastapi.testclient", reason="the server's packages are not installed")
    pytest.importorskip("prometheus_client", reason="the server's packages are not installed")
    from ewe.server.app import create_app

    with testclient.TestClient(create_app(llm)) as client:
        body = {"model": "scripted", "messages": TALK, "memory": {"user": "ann", "remember": True}}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
        last = time.monotonic() + WAIT_S
        while not contents(store) and time.monotonic() < last:  # the answer may come before the memories hear of it
            assert llm.memories.wait(WAIT_S)
        [memory] = client.get("/v1/memories", params={"user": "ann"}).json()["data"]
        assert (memory["content"], memory["veracity"]) == (FACT, 0.5)
        assert memory["source"] == {"kind": "model", "id": "extraction", "reliability": 0.5}
        refused = client.post("/v1/memories/search", json={"query": "x", "remember": True})
        assert refused.status_code == 400


def remember(store: Path, file: Path, *model: str) -> Result:
    return CliRunner().invoke(
        app, ["memory", "remember", str(store), str(file), "--user", "ann", "--judge", "builtin", *model]
    )


@pytest.mark.parametrize("form", ["list", "lines", "object"])
def test_the_command_reads_conversations(tmp_path: Path, form: str) -> None:
    messages = [*TALK, {"role": "assistant", "content": "I moved to Lyon in 2019."}, {"role": "user", "content": "Hi."}]
    texts = {
        "list": json.dumps(messages, indent=1),
        "lines": "\n".join(map(json.dumps, messages)) + "\n",
        "object": json.dumps({"messages": messages}),
    }
    file, folder = tmp_path / "talk", tmp_path / "made"
    file.write_text(texts[form], encoding="utf-8")
    told = remember(folder, file)
    assert (told.exit_code, FACT in told.stdout) == (0, True), told.output
    assert "2 messages read\n" in told.stderr
    with MemoryStore.open(folder) as opened:
        assert contents(opened) == [FACT]


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "talk"
    for text, problem in (
        ("{", "talk:1: not valid JSON"),
        ('{"role": "user"}', 'a text under "content"'),
        ("[]", "is empty"),
    ):
        file.write_text(text, encoding="utf-8")
        told = remember(tmp_path / "made", file)
        assert (told.exit_code, problem in " ".join(told.stderr.split())) == (2, True), told.output
    file.write_text(json.dumps(TALK), encoding="utf-8")
    model = mock.MagicMock()
    model.__enter__.return_value.chat_plainly.return_value = "no JSON"
    with mock.patch("ewe.longterm.commands.memory_write.open_llm", return_value=model):
        told = remember(tmp_path / "made", file, "--model", "smollm2")
    assert (told.exit_code, "1 message read, 1 without" in told.stderr) == (1, True)
