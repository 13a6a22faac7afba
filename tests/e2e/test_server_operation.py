"""What users of a server run into: keys, limits, full queues, clients that go, components that hang or fail."""

from __future__ import annotations

import base64
import json
import socket
import threading
from typing import Any

import pytest
from builtin_rig import CHAT, ENDLESS, server
from server_rig import LONG, PROMPT, events_of, wait_for, wait_until_idle

from ewe.server.settings import ServerSettings
from ewe.types import Claim, Verdict, VerificationResult

KEY = "open s\u00e9same"


class Hanging:
    """A verifier whose calls end when the test says so."""

    def __init__(self) -> None:
        self.gate, self.entered = threading.Event(), threading.Event()

    def verify(self, requests: Any) -> Any:
        self.entered.set()
        assert self.gate.wait(LONG)
        claim = Claim("It is so.", verdict=Verdict.SUPPORTED, score=1.0)
        return [VerificationResult((claim,)) for _ in requests]


class Failing:
    """A verifier that is broken."""

    def verify(self, requests: Any) -> Any:
        raise RuntimeError("the judge is on holiday")


class HangingLibrary:
    """A retriever whose calls end when the test says so, or that is broken; it notes its queries."""

    def __init__(self, is_broken: bool = False) -> None:
        self.gate, self.is_broken, self.queries = threading.Event(), is_broken, []

    def retrieve(self, queries: Any, top_k: int) -> Any:
        self.queries += queries
        if self.is_broken:
            raise RuntimeError("the shelves are empty")
        assert self.gate.wait(LONG)
        return [[] for _ in queries]


def ask_bare(url: Any, body: Any) -> socket.socket:
    """A connection that has asked and reads nothing; closing it hangs up."""
    content = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
    connection = socket.create_connection((url.host, url.port))
    connection.sendall(f"{head}{len(content)}\r\n\r\n".encode() + content)
    return connection


def test_a_browser_of_another_site_may_ask_if_it_is_allowed_to() -> None:
    settings = ServerSettings.from_mapping({"api_key": KEY, "cors_origins": ["https://a.example"]})
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    with server(settings) as client:
        allowed = client.options("/v1/chat/completions", headers=asked)
        assert allowed.status_code == 200, "the browser asks without a key"
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        assert allowed.headers["x-request-id"]
        refused = client.get("/ready", headers={"origin": "https://a.example", "x-request-id": "mine"})
        assert (refused.status_code, refused.headers["x-request-id"]) == (401, "mine")
        assert refused.headers["access-control-allow-origin"] == "https://a.example", "and can read why not"
        other = client.options("/v1/chat/completions", headers={**asked, "origin": "https://b.example"})
        assert (other.status_code, "access-control-allow-origin" in other.headers) == (400, False)
        assert other.headers["x-request-id"]


def test_keys_limits_and_request_ids() -> None:
    settings = ServerSettings.from_mapping({"api_key": KEY, "max_body_bytes": 2000})
    with server(settings) as client:
        assert client.get("/health").status_code == 200
        for path in ("/", "/ready", "/metrics", "/v1/models", "/openapi.json", "/nowhere"):
            refused = client.get(path, headers={"authorization": "Bearer wrong"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
            assert refused.headers["www-authenticate"] == "Bearer"
            assert refused.headers["x-request-id"]
        asked = client.get("/", headers={"accept": "text/html"})
        assert asked.headers["www-authenticate"].startswith("Basic")
        basic = base64.b64encode(f"anyone:{KEY}".encode()).decode()
        assert client.get("/", headers={"authorization": f"Basic {basic}"}).status_code == 200
        for broken in ("Basic %%%", "Basic \u00e9", "Basic", "Bearer", "Bearer open", KEY, f"Digest {KEY}"):
            assert client.get("/ready", headers={"authorization": broken.encode()}).status_code == 401
        client.headers["authorization"] = f"Bearer {KEY}"
        assert client.get("/ready", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
        assert client.get("/ready", headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"
        large = json.dumps({**CHAT, "user": "x" * 2000}).encode()
        for content in (large, (part for part in (large[:1500], large[1500:]))):
            answer = client.post("/v1/chat/completions", content=content, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
        assert client.get("/nowhere").json()["error"]["code"] == "not_found"
        assert client.get("/v1/chat/completions").status_code == 405
        figures = client.get("/metrics").text
        assert 'ewe:sentences_total{verdict="refuted"} 0.0' in figures
        assert "ewe:num_requests_running 0.0" in figures


def test_a_full_queue_a_greedy_key_and_clients_that_go() -> None:
    hanging = Hanging()
    settings = ServerSettings.from_mapping({"max_waiting": 1, "max_per_key": 2, "ping": 0.02})
    with server(settings, verifier=hanging, assignments=["scheduler.max_num_seqs=2"]) as client:
        with client.stream("POST", "/v1/chat/completions", json={**ENDLESS, "stream": True}) as first:
            lines = first.iter_lines()
            assert next(lines).startswith("data: ")
            assert any(line == ": ping" for line in lines), "it says nothing while it pauses"
            assert hanging.entered.wait(LONG)
            greedy = client.post("/v1/chat/completions", json={**CHAT, "n": 2})
            assert (greedy.status_code, greedy.json()["error"]["type"]) == (429, "rate_limit_error")
            client.app.state.service.admission._per_key = None
            full = client.post("/v1/chat/completions", json={**CHAT, "n": 3})
            assert (full.status_code, full.json()["error"]["code"]) == (429, "queue_full")
            assert int(full.headers["retry-after"]) > 0
            # A client that does not stream goes, too.
            with ask_bare(client.base_url, ENDLESS):
                wait_for(lambda: client.llm.client.status().running == 2, "both are under way")
            wait_for(lambda: client.app.state.service.admission.num_inside == 1, "the one without a stream is gone")
        wait_until_idle(client.llm)
        assert 'finished_reason="abort"} 2.0' in client.get("/metrics").text
        hanging.gate.set()


def test_a_verifier_that_hangs_or_fails_does_not_stop_the_text() -> None:
    hanging = Hanging()
    with server(verifier=hanging, assignments=["feedback.timeout=0.2"]) as client:
        told = client.post("/v1/chat/completions", json={**CHAT, "max_tokens": 20}).json()["ewe"]["sentences"]
        assert told
        assert all(item["verdict"] == "not_checked" for item in told)
        assert "did not answer within 0.2 s" in told[0]["reason"]
        checked = client.post("/v1/verify", json={"text": "He was born in 1850."}).json()
        assert "did not answer within 0.2 s" in checked["error"]
        hanging.gate.set()
    with server(verifier=Failing()) as client:
        answer = client.post("/v1/chat/completions", json={**CHAT, "max_tokens": 20})
        assert "on holiday" in answer.json()["ewe"]["sentences"][0]["reason"]
        checked = client.post("/v1/verify", json={"text": "He was born in 1850. It is so."})
        assert checked.status_code == 200
        assert {item["reason"] for item in checked.json()["sentences"]} == {checked.json()["error"]}
        assert client.post("/v1/verify", json={"text": "  "}).status_code == 400
        against = {"text": "Anna Berg was born in 1850.", "documents": ["Anna Berg was born in 1900 in Lund."]}
        [sentence] = client.post("/v1/verify", json=against).json()["sentences"]
        assert sentence["verdict"] != "supported"
        assert (sentence["start_index"], sentence["end_index"]) == (0, len(against["text"]))


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_retriever_that_hangs_or_fails_does_not_stop_the_text(is_broken: bool) -> None:
    library = HangingLibrary(is_broken)
    changes = ["feedback.timeout=0.2", "verifier=null", "feedback.retrieve_every=4"]
    with server(datastore=library, assignments=changes) as client:
        answer = client.post("/v1/chat/completions", json=CHAT)
        assert answer.status_code == 200
        assert answer.json()["choices"][0]["message"]["content"]
        assert answer.json()["ewe"]["sources"] == []
        stream = client.post("/v1/chat/completions", json={**CHAT, "stream": True, "ewe": {"events": True}})
        live = [json.loads(item).get("ewe", {}) for item in events_of(stream.text)[:-1]]
        [first, *_] = [item["data"] for item in live if item.get("event") == "retrieval"]
        assert ("the shelves are empty" if is_broken else "did not answer within 0.2 s") in first["error"]
        library.gate.set()
    assert library.queries[0] == PROMPT, "not the chat template's text"


def test_deadlines_of_a_request_and_of_the_server() -> None:
    hanging = Hanging()
    with server(verifier=hanging) as client:
        for deadline_s in (1e-6, 0.2):
            answer = client.post("/v1/chat/completions", json={**ENDLESS, "ewe": {"deadline_s": deadline_s}})
            assert answer.status_code == 200, "who names a time gets what there is then, be it nothing"
            assert answer.json()["ewe"]["finish_reasons"] == ["timeout"]
            assert answer.json()["choices"][0]["finish_reason"] == "length"
        brief = {"input": PROMPT, "ewe": {"deadline_s": 1e-6}}
        assert client.post("/v1/responses", json=brief).json()["status"] == "incomplete"
        client.app.state.service.settings = ServerSettings(deadline=1e-6)
        late = client.post("/v1/chat/completions", json={**ENDLESS, "ewe": {"deadline_s": 5.0}})
        assert (late.status_code, late.json()["error"]["code"]) == (503, "deadline")
        assert late.headers["x-should-retry"] == "false"
        hanging.gate.set()


def test_failures_of_the_engine() -> None:
    with server() as client:
        runner = client.llm.client.engine.core.runner
        real, runner.forward = runner.forward, _break
        broken = client.post("/v1/chat/completions", json=CHAT)
        assert (broken.status_code, broken.headers["x-should-retry"]) == (500, "false")
        stream = client.post("/v1/chat/completions", json={**CHAT, "stream": True})
        *_, error, done = events_of(stream.text)
        assert (json.loads(error)["error"]["code"], done) == ("engine_error", "[DONE]")
        runner.forward = real
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
        wait_until_idle(client.llm)
        client.app.state.service.admission.is_draining = True
        assert client.get("/ready").json()["error"]["code"] == "shutting_down"
        client.app.state.service.admission.is_draining = False
        client.llm.close()
        assert client.get("/health").status_code == 503
        assert client.post("/v1/chat/completions", json=CHAT).json()["error"]["code"] == "engine_dead"


def test_keys_do_not_share_encoded_texts(tmp_path: Any) -> None:
    (tmp_path / "keys").write_text("one\ntwo\n")
    settings = ServerSettings(api_key_file=tmp_path / "keys")
    body = {**CHAT, "max_tokens": 1, "documents": ["Some text of the first."]}
    with server(settings, assignments=["datastore=null", "verifier=null"]) as client:
        texts = []
        for key, salt, misses in (("one", None, 1), ("one", None, 1), ("two", None, 2), ("two", "own", 3)):
            headers = {"authorization": f"Bearer {key}"}
            answer = client.post("/v1/chat/completions", json={**body, "cache_salt": salt}, headers=headers)
            texts.append(answer.json()["choices"][0]["message"]["content"])
            assert client.llm.client.status().unit_misses == misses
        assert len(set(texts)) == 1


def _break(rows: Any) -> Any:
    raise RuntimeError("out of memory")
