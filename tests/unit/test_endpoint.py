"""Completers against real servers on this machine: good answers, and every way of giving bad ones."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ewe.errors import ConfigError
from ewe.verification.endpoint.completer import EndpointCompleter, chat_url
from ewe.verification.endpoint.protocol import Completer, CompletionError, LocalCompleter, complete_each
from ewe.verification.endpoint.transport import retry_after


def answer(text: Any, finish_reason: str = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice], **more}).encode()


class Server(ThreadingHTTPServer):
    """Answers each prompt with its capitals, or with what `script` holds for the request of that number."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Any] = []
        self.received: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.lock = threading.Lock()
        self.running = self.most = 0
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.received.append((self.path, dict(self.headers), body))
            step = self.server.script.pop(0) if self.server.script else None
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
        try:
            if step is None:
                self.send(answer(f" {body['messages'][0]['content'].upper()}\n"))
            else:
                step(self)
        finally:
            with self.server.lock:
                self.server.running -= 1

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.stopping.set()
        running.shutdown()
        thread.join()


def completer(server: Server, **settings: Any) -> EndpointCompleter:
    return EndpointCompleter("tiny", server.url, **settings)


def test_answers_come_in_the_order_of_the_prompts(server: Server) -> None:
    endpoint = completer(server, max_tokens=7)
    assert isinstance(endpoint, Completer)
    assert endpoint.complete(["one", "two", "three"]) == ["ONE", "TWO", "THREE"]
    path, _, request = server.received[0]
    assert path == "/v1/chat/completions"
    assert request["model"] == "tiny"
    assert request["max_tokens"] == 7
    assert request["temperature"] == 0.0


def test_no_prompts_send_nothing_and_equal_prompts_are_sent_once(server: Server) -> None:
    endpoint = completer(server)
    assert endpoint.complete([]) == []
    assert endpoint.complete(["a", "b", "a"]) == ["A", "B", "A"]
    assert len(server.received) == 2


def test_the_key_comes_from_the_environment_and_shows_nowhere(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    completer(server).complete(["x"])
    assert "Authorization" not in server.received[0][1]
    monkeypatch.setenv("EWE_API_KEY", "secret-key")
    keyed = completer(server)
    keyed.complete(["x"])
    assert server.received[1][1]["Authorization"] == "Bearer secret-key"
    server.script = [lambda handler: handler.send(b'{"error": "who are you"}', 401)]
    with pytest.raises(CompletionError, match=r"401.*who are you.*\$EWE_API_KEY") as caught:
        keyed.complete(["x"])
    assert "secret-key" not in str(caught.value) + repr(keyed)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_overload_is_tried_again_when_the_server_says(server: Server, status: int) -> None:
    server.script = [lambda handler: handler.send(b"busy", status, Retry_After="0")]
    assert completer(server).complete(["x"]) == ["X"]
    assert len(server.received) == 2


def test_retry_after_is_waited_for(server: Server) -> None:
    server.script = [lambda handler: handler.send(b"busy", 429, Retry_After="1")]
    start = time.monotonic()
    assert completer(server).complete(["x"]) == ["X"]
    assert time.monotonic() - start >= 1.0


def test_a_wait_beyond_the_time_limit_is_not_begun(server: Server) -> None:
    server.script = [lambda handler: handler.send(b"busy", 429, Retry_After="900")]
    start = time.monotonic()
    with pytest.raises(CompletionError, match="429"):
        completer(server, time_limit_s=200).complete(["x"])
    assert time.monotonic() - start < 100


def test_tries_are_bounded_and_counted(server: Server) -> None:
    server.script = [lambda handler: handler.send(b"down", 503, Retry_After="0")] * 9
    with pytest.raises(CompletionError, match=r"503.*after 3 tries"):
        completer(server, attempts=3).complete(["x"])
    assert len(server.received) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 302])
def test_a_refusal_is_not_tried_again(server: Server, status: int) -> None:
    server.script = [lambda handler: handler.send(b"no such model", status, Location="http://127.0.0.1:9/elsewhere")]
    with pytest.raises(CompletionError, match=f"{status}.*no such model"):
        completer(server).complete(["x"])
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>welcome</html>", "not JSON"),
        (b"[1, 2]", "not an object"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"{}", "choices"),
        (b'{"choices": []}', "choices"),
        (b'{"choices": {"0": 1}}', "choices"),
        (b'{"choices": ["text"]}', "choices"),
        (b'{"error": {"message": "model is loading"}}', "model is loading"),
        (answer(None), "not text"),
        (answer(["x"]), "not text"),
        (answer("half an ans", "length"), "max_tokens"),
    ],
)
def test_nonsense_is_a_clear_error(server: Server, body: bytes, message: str) -> None:
    server.script = [lambda handler: handler.send(body)]
    with pytest.raises(CompletionError, match=message):
        completer(server).complete(["x"])
    assert len(server.received) == 1


def test_a_connection_closed_in_mid_body_is_tried_again(server: Server) -> None:
    def break_off(handler: Handler) -> None:
        body = answer("hello")
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:20])
        handler.close_connection = True

    server.script = [break_off]
    assert completer(server).complete(["x"]) == ["X"]
    assert len(server.received) == 2


def test_a_server_that_hangs_is_left_in_time(server: Server) -> None:
    server.script = [lambda handler: handler.server.stopping.wait(100)]
    start = time.monotonic()
    with pytest.raises(CompletionError, match=r"did not answer within 0\.2 s"):
        completer(server, request_timeout_s=0.2, attempts=1).complete(["x"])
    assert time.monotonic() - start < 90


def test_a_server_that_trickles_is_left_in_time(server: Server) -> None:
    def trickle(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "10000")
        handler.end_headers()
        for _ in range(2000):
            handler.wfile.write(b" ")
            if handler.server.stopping.wait(0.05):
                break

    server.script = [trickle]
    start = time.monotonic()
    with pytest.raises(CompletionError, match="did not finish"):
        completer(server, request_timeout_s=0.3, attempts=1).complete(["x"])
    assert time.monotonic() - start < 90


def test_a_flood_is_cut_off(server: Server) -> None:
    def flood(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(2**30))
        handler.end_headers()
        try:
            for _ in range(1024):
                handler.wfile.write(b" " * 2**20)
        except OSError:
            handler.close_connection = True

    server.script = [flood]
    with pytest.raises(CompletionError, match="more than"):
        completer(server).complete(["x"])


def test_an_endpoint_that_is_down_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and nobody else can take it while it is asked
        port = free.getsockname()[1]
        with pytest.raises(CompletionError, match=rf"127.0.0.1:{port}.*cannot be reached"):
            EndpointCompleter("tiny", f"http://127.0.0.1:{port}/v1", attempts=1).complete(["x"])


def test_one_failure_leaves_the_other_answers(server: Server) -> None:
    server.script = [lambda handler: handler.send(b"no", 400)]
    answers = complete_each(completer(server, max_parallel=1), ["a", "b"])
    assert isinstance(answers[0], CompletionError)
    assert answers[1] == "B"
    assert complete_each(LocalCompleter(str.split), ["a", "b"])[1].args[0].startswith("the local model failed")


def test_parallel_requests_are_bounded(server: Server) -> None:
    def slow(handler: Handler) -> None:
        handler.server.stopping.wait(0.05)
        handler.send(answer("x"))

    server.script = [slow] * 12
    completer(server, max_parallel=3).complete([str(number) for number in range(12)])
    assert 2 <= server.most <= 3


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://user:pw@host/v1", "http://[::1"]
)
def test_urls_that_cannot_be_used_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        EndpointCompleter("tiny", url)


@pytest.mark.parametrize("setting", ["max_tokens", "attempts", "max_parallel", "request_timeout_s", "time_limit_s"])
def test_limits_must_be_positive(setting: str) -> None:
    with pytest.raises(ConfigError, match=setting):
        EndpointCompleter("tiny", "http://127.0.0.1:1/v1", **{setting: 0})


def test_chat_urls() -> None:
    assert chat_url("http://host:8000") == "http://host:8000/v1/chat/completions"
    assert chat_url("http://host:8000/") == "http://host:8000/v1/chat/completions"
    assert chat_url("https://host/api/v1/") == "https://host/api/v1/chat/completions"
    assert chat_url("https://host/v1/chat/completions") == "https://host/v1/chat/completions"


def test_retry_after_in_both_forms() -> None:
    assert retry_after("3") == 3.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None


def test_a_local_callable_completes() -> None:
    local = LocalCompleter(lambda prompts: [f" {prompt}! " for prompt in prompts])
    assert isinstance(local, Completer)
    assert local.complete(["a", "b"]) == ["a!", "b!"]
    assert local.complete([]) == []


@pytest.mark.parametrize("given", [["one"], [1, 2], ["a", None]])
def test_a_local_callable_must_give_texts(given: list[Any]) -> None:
    with pytest.raises(CompletionError, match="2 texts"):
        LocalCompleter(lambda prompts: given).complete(["a", "b"])
