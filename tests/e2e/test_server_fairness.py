"""One tenant's slow or many requests leave the others' alone: each kind of work is done tenant by tenant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_rig import CHAT, server
from server_rig import LONG, http, wait_for

from ewe.server import app, verify_text
from ewe.server.settings import ServerSettings
from ewe.server.traffic.pacing import Pacing

FLOOD = 12
SLOW, QUICK = "slow and never done", "quick"


class Gate:
    """Where slow work stands until the test lets it go on."""

    def __init__(self) -> None:
        self.opened, self.entered = threading.Event(), 0

    def wait(self) -> None:
        self.entered += 1
        assert self.opened.wait(LONG)


class SlowTokenizer:
    """The model's tokenizer, which never comes to an end with some texts."""

    def __init__(self, tokenizer: Any, gate: Gate) -> None:
        self._tokenizer, self._gate = tokenizer, gate

    def __call__(self, text: str, **options: Any) -> Any:
        if SLOW in text:
            self._gate.wait()
        return self._tokenizer(text, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


class SlowEncoder:
    """A sentence encoder, which never comes to an end with some texts."""

    name, dimension, max_tokens = "encoder", 2, None

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def count_tokens(self, texts: list[Any]) -> list[int]:
        if SLOW in texts[0]:
            self._gate.wait()
        return [1] * len(texts)

    def encode_passages(self, texts: list[str]) -> Any:
        return np.zeros((len(texts), 2), np.float32)

    def score(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [0.0] * len(pairs)


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    (tmp_path / "keys").write_text("one\ntwo\n")
    return ServerSettings(api_key_file=tmp_path / "keys", max_queued_per_key=FLOOD)


@contextmanager
def flood(client: Any, gate: Gate, path: str, body: Any, count: int = FLOOD) -> Iterator[Any]:
    """Requests of the first key that stand still until the end; all of them have been taken in."""

    def ask(_: int) -> int:
        headers = {"authorization": "Bearer one"}
        return int(http.post(str(client.base_url.join(path)), json=body, headers=headers).status_code)

    with ThreadPoolExecutor(count) as pool:
        answers = pool.map(ask, range(count))
        try:
            wait_for(lambda: client.app.state.service.admission.num_inside == count, "all are taken in")
            wait_for(lambda: gate.entered, "some have begun")
            yield answers
        finally:
            gate.opened.set()
    assert set(answers) == {200}


def ask_as_two(client: Any, path: str, body: Any) -> int:
    return int(client.post(path, json=body, headers={"authorization": "Bearer two"}).status_code)


VERIFY = ("/v1/verify", {"text": f"It is {SLOW}."}, {"text": f"It is {QUICK}."})
MEMORY = ("/v1/memories/search", {"query": SLOW}, {"query": QUICK})
EMBEDDINGS = ("/v1/embeddings", {"input": SLOW}, {"input": QUICK})
RERANK = ("/v1/rerank", *({"query": text, "documents": ["x"]} for text in (SLOW, QUICK)))
TOKENS = ("/tokenize", {"prompt": SLOW}, {"prompt": QUICK})
PROMPTS = (
    "/v1/chat/completions",
    *({"messages": [{"role": "user", "content": text}], "max_tokens": 2} for text in (SLOW, QUICK)),
)


@contextmanager
def slow_server(settings: ServerSettings, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[tuple[Any, Gate]]:
    """A server of which every part stands still when it meets a slow text."""
    gate, check = Gate(), verify_text._check

    def slow_check(verifiers: Any, body: Any, documents: Any, turn: Any, cancellation: Any) -> Any:
        if SLOW in body.text:
            gate.wait()
        return check(verifiers, body, documents, turn, cancellation)

    monkeypatch.setattr(verify_text, "_check", slow_check)
    with server(settings, longterm=folder, assignments=["verifier=null"]) as client:
        served, engine = client.app.state.service.served, client.llm.client.engine
        search = client.llm.memories.service.search

        def slow_search(query: str, *rest: Any) -> Any:
            if SLOW in query:
                gate.wait()
            return search(query, *rest)

        monkeypatch.setattr(client.llm.memories.service, "search", slow_search)
        served.engine.sentence_models._encoder = SlowEncoder(gate)
        served.engine.sentence_models._reranker = SlowEncoder(gate)
        engine.input_processor.tokenizer = SlowTokenizer(engine.input_processor.tokenizer, gate)
        yield client, gate


@pytest.mark.parametrize(("path", "slow", "quick"), [VERIFY, MEMORY, EMBEDDINGS, RERANK, TOKENS, PROMPTS])
def test_a_flood_of_one_key_leaves_the_other_key_alone(
    settings: ServerSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, slow: Any, quick: Any
) -> None:
    with slow_server(settings, monkeypatch, tmp_path / "memories") as (client, gate), flood(client, gate, path, slow):
        assert ask_as_two(client, path, quick) == 200
        assert ask_as_two(client, "/v1/chat/completions", CHAT) == 200


def test_a_full_queue_is_a_429_for_its_key_and_takes_no_answers_place(
    settings: ServerSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, slow, quick = VERIFY
    tight = settings.model_copy(update={"max_waiting": 0})
    # A key has half of the eight threads, and as many places as are set to wait in.
    with slow_server(tight, monkeypatch, tmp_path / "m") as (client, gate), flood(client, gate, path, slow, 4 + FLOOD):
        refused = client.post(path, json=slow, headers={"authorization": "Bearer one"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many")
        assert int(refused.headers["retry-after"]) > 0
        assert "server.max_queued_per_key" in refused.json()["error"]["message"]
        assert ask_as_two(client, path, quick) == 200
        assert ask_as_two(client, "/v1/chat/completions", CHAT) == 200


def test_beside_another_key_texts_of_one_are_checked_one_after_the_other(
    settings: ServerSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, slow, _ = VERIFY
    pacing = Pacing(FLOOD)
    monkeypatch.setattr(app, "Pacing", lambda most_waiting: pacing)
    # An answer of the other key would end before the texts are checked.
    monkeypatch.setattr(pacing, "others_have_answers", lambda tenant: True)
    with slow_server(settings, monkeypatch, tmp_path / "m") as (client, gate), ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask_as_two, client, path, slow)]
        try:
            wait_for(lambda: gate.entered == 1, "the other key's is under way")
            answers += [pool.submit(_ask_as_one, client, path, slow) for _ in range(3)]
            wait_for(lambda: sum(one.waiting for one in pacing._tenants.values()) == 2, "two wait for their turn")
            wait_for(lambda: gate.entered == 2, "one does not")
            assert _ask_as_one(client, "/v1/chat/completions", CHAT) == 200, "an answer needs no turn"
            assert gate.entered == 2
        finally:
            gate.opened.set()
        assert [answer.result() for answer in answers] == [200] * 4


def _ask_as_one(client: Any, path: str, body: Any) -> int:
    return int(client.post(path, json=body, headers={"authorization": "Bearer one"}).status_code)
