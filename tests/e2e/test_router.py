"""The router before servers that play a part: who is asked, what is asked again, what a client sees of a loss."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from server_rig import events_of, http, httpx, serving, wait_for
from stand_in_servers import Actor, Server, running

from ewe.server.router import proxy
from ewe.server.router.replicas import Replica, ReplicaSet
from ewe.server.router.router_app import create_router

CHAT = "/v1/chat/completions"
OPENING, NEWS = 'data: {"delta": ""}\n\n', 'data: {"delta": "Hello"}\n\n'


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    with running(2) as made:
        yield made


@pytest.fixture
def replicas(servers: list[Server]) -> ReplicaSet:
    return ReplicaSet([Replica(str(number), server.url) for number, server in enumerate(servers)])


@pytest.fixture
def url(replicas: ReplicaSet) -> Iterator[str]:
    with serving(create_router(replicas, max_body_bytes=1000)) as address:
        wait_for(lambda: all(each.state == "ready" for each in replicas.replicas), "both are ready")
        yield address


def ask(url: str, question: str = "Who?", **body: Any) -> httpx.Response:
    return http.post(f"{url}{CHAT}", json={"messages": [{"role": "user", "content": question}], **body})


def owner_first(servers: list[Server], url: str) -> tuple[Server, Server]:
    """The server that the question belongs to, and the other one."""
    name = int(ask(url).headers["x-ewe-replica"])
    for server in servers:
        server.seen.clear()
    return servers[name], servers[1 - name]


def lose_after(actor: Actor, *pieces: str) -> None:
    actor.begin_stream(*pieces)
    actor.lose()


def whole_stream(actor: Actor) -> None:
    actor.begin_stream(OPENING, NEWS)
    actor.end_stream("data: [DONE]\n\n")


def test_requests_and_answers_go_through_as_they_are(servers: list[Server], url: str) -> None:
    for server in servers:
        server.play = lambda actor: actor.answer(418, b"\x00\xff", x_mine="1", content_type="image/x")
    told = {"authorization": "Bearer key", "x-request-id": "abc", "connection": "close"}
    answer = http.post(f"{url}/some/p%20ath?a=1&b=%2F", content=b"{not json", headers=told)
    assert (answer.status_code, answer.content, answer.headers["x-mine"]) == (418, b"\x00\xff", "1")
    assert answer.headers["content-type"] == "image/x"
    [(method, path, headers, body)] = servers[0].seen + servers[1].seen
    assert (method, path, body) == ("POST", "/some/p%20ath?a=1&b=%2F", b"{not json")
    assert headers["authorization"] == "Bearer key"
    assert headers["x-request-id"] == "abc" == answer.headers["x-request-id"]


def test_what_belongs_to_one_client_or_connection_is_not_passed_on(servers: list[Server], url: str) -> None:
    def answer(actor: Actor) -> None:
        actor.answer(200, {}, set_cookie="who=first; Path=/")

    for server in servers:
        server.play = answer
    for _ in range(2):
        told = http.post(
            f"{url}/a", content=iter([b"{}"]), headers={"content-length": "9", "transfer-encoding": "chunked"}
        )
        assert told.headers["set-cookie"] == "who=first; Path=/"
        assert len(told.headers.get_list("date")) == 1
        http.cookies.clear()
    for _, _, headers, body in servers[0].seen + servers[1].seen:
        passed = {name.lower(): value for name, value in headers.items()}
        assert not passed.keys() & {"cookie", "transfer-encoding"}
        assert (passed["content-length"], body) == ("2", b"{}")


@pytest.mark.parametrize("target", ["/v1/%6demories", "/v1/x/../memories"])
def test_however_a_path_is_written_it_is_what_the_server_reads(servers: list[Server], url: str, target: str) -> None:
    for server in servers:
        server.play = Actor.lose
    host, port = url.removeprefix("http://").split(":")
    connection = HTTPConnection(host, int(port))
    connection.request("POST", target, b"{}")
    assert connection.getresponse().status == 502
    connection.close()
    assert len(servers[0].seen + servers[1].seen) == 1, "asked once: it may have been done"


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
def test_a_client_that_goes_within_its_body_is_no_failure(
    url: str, path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("ewe.server"), "propagate", True)
    caplog.set_level(logging.INFO, "ewe.server")
    with socket.create_connection(url.removeprefix("http://").split(":")) as client:  # type: ignore[arg-type]
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{{".encode())
    wait_for(lambda: any(item.getMessage() == "request" for item in caplog.records), "the line in the log")
    assert not [item for item in caplog.records if item.levelno >= logging.ERROR]


def test_a_datastore_that_hangs_does_not_hold_up_requests(
    servers: list[Server], replicas: ReplicaSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "_FIND_S", 0.01)
    answered = threading.Event()

    def find(question: str) -> str:
        answered.wait(30)
        return ""

    with serving(create_router(replicas, 1000, find)) as address:
        wait_for(lambda: replicas.is_ready, "one is ready")
        assert {ask(address).status_code for _ in range(3)} == {200}
        finders = [thread for thread in threading.enumerate() if thread.name == "ewe-routing"]
        assert finders
        assert all(thread.daemon for thread in finders), "nor the end of the process"
        answered.set()


def test_a_key_stays_with_its_server_and_keys_spread(url: str) -> None:
    by = {question: {ask(url, question).json()["by"] for _ in range(3)} for question in "abcdefgh"}
    assert all(len(who) == 1 for who in by.values())
    assert len(set.union(*by.values())) == 2


def test_whoever_refuses_or_is_gone_is_passed_over(servers: list[Server], replicas: ReplicaSet, url: str) -> None:
    owner, other = owner_first(servers, url)
    owner.play = lambda actor: actor.answer(503, {"error": {"code": "loading"}}, retry_after="2")
    assert ask(url).json()["by"] == other.server_port
    other.play = owner.play
    assert ask(url).json()["error"]["code"] == "loading", "if all refuse, the client hears why"
    owner.play = lambda actor: actor.answer(503, {"error": {"code": "deadline"}})
    assert ask(url).json()["error"]["code"] == "deadline", "an answer that says not to ask again"
    assert sum(each.failed for each in replicas.replicas) == 3
    owner.ping_status = other.ping_status = 503
    wait_for(lambda: not replicas.is_ready, "nobody is ready")
    answer = ask(url)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_replica")
    assert answer.headers["retry-after"]
    assert http.get(f"{url}/ready").status_code == 503
    assert http.get(f"{url}/health").json()["replicas"] == {"0": "loading", "1": "loading"}


def test_what_is_lost_before_its_answer_is_asked_again(servers: list[Server], url: str) -> None:
    owner, other = owner_first(servers, url)
    owner.play = Actor.lose
    assert ask(url).json()["by"] == other.server_port
    assert len(owner.seen) == 1
    other.play = Actor.lose
    answer = ask(url)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "replica_lost")


def test_what_has_effects_is_not_asked_twice(servers: list[Server], url: str) -> None:
    for server in servers:
        server.play = Actor.lose
    answer = http.post(f"{url}/v1/memories", json={"text": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "replica_lost")
    assert answer.headers["x-should-retry"] == "false"
    assert len(servers[0].seen + servers[1].seen) == 1


@pytest.mark.parametrize("pieces", [(OPENING,), (OPENING, ": retrieving\n\n"), ()])
def test_a_stream_that_is_lost_before_its_first_news_is_begun_again(
    servers: list[Server], url: str, pieces: tuple[str, ...]
) -> None:
    owner, other = owner_first(servers, url)
    owner.play = lambda actor: lose_after(actor, *pieces)
    other.play = whole_stream
    answer = ask(url, stream=True)
    assert answer.text == f"{OPENING}{NEWS}data: [DONE]\n\n"
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_a_stream_that_is_lost_later_says_so(servers: list[Server], url: str) -> None:
    owner, _ = owner_first(servers, url)
    owner.play = lambda actor: lose_after(actor, OPENING, NEWS)
    *told, error, end = events_of(ask(url, stream=True).text)
    assert told == [event for piece in (OPENING, NEWS) for event in events_of(piece)]
    assert json.loads(error)["error"]["code"] == "replica_lost"
    assert end == "[DONE]"


@pytest.mark.parametrize(("path", "end"), [("/v1/messages", "error"), ("/v2/chat", "message-end")])
def test_a_lost_stream_ends_in_the_form_of_its_api(servers: list[Server], url: str, path: str, end: str) -> None:
    owner, _ = owner_first(servers, url)
    owner.play = lambda actor: lose_after(actor, OPENING, NEWS)
    body = {"messages": [{"role": "user", "content": "Who?"}], "stream": True}
    _, _, told = http.post(f"{url}{path}", json=body).text.partition(NEWS)
    name, data, *_ = told.strip().split("\n")
    assert name == f"event: {end}"
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == "replica_lost"


def test_nobody_takes_half_an_answer_for_a_whole_one(servers: list[Server], url: str) -> None:
    def half(actor: Actor) -> None:
        actor.send_response(200)
        actor.send_header("content-length", "100")
        actor.end_headers()
        actor.wfile.write(b"half")
        actor.lose()

    owner, _ = owner_first(servers, url)
    owner.play = half
    with pytest.raises(httpx.RemoteProtocolError):
        ask(url)


def test_files_are_the_first_servers_whatever_their_size(servers: list[Server], replicas: ReplicaSet, url: str) -> None:
    content = b"x" * 5000
    replicas.replicas[0].load = 100
    for _ in range(4):
        assert http.post(f"{url}/v1/files", content=content).json()["by"] == servers[0].server_port
        assert http.get(f"{url}/v1/batches/batch_1").json()["by"] == servers[0].server_port
    assert servers[0].seen[0][3] == content
    assert not servers[1].seen
    answer = http.post(f"{url}{CHAT}", content=content)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_a_client_that_hangs_up_ends_the_work(servers: list[Server], url: str) -> None:
    asked, ended = threading.Event(), threading.Event()

    def wait_for_the_end(actor: Actor) -> None:
        asked.set()
        assert actor.connection.recv(1) == b""
        ended.set()

    owner, other = owner_first(servers, url)
    owner.play = wait_for_the_end
    host, port = url.removeprefix("http://").split(":")
    client = HTTPConnection(host, int(port))
    client.request("POST", CHAT, json.dumps({"messages": [{"role": "user", "content": "Who?"}]}))
    assert asked.wait(30)
    client.close()
    assert ended.wait(30)
    assert not other.seen


def test_metrics_of_all_in_one(servers: list[Server], url: str) -> None:
    text = b'# HELP ewe:a_total A.\n# TYPE ewe:a_total counter\newe:a_total{kind="x"} %d.0\n'
    for number, server in enumerate(servers):
        server.play = lambda actor, number=number: actor.answer(200, text % number)  # type: ignore[misc]
    told = http.get(f"{url}/metrics", headers={"authorization": "Bearer k"}).text
    assert told.count("# TYPE ewe:a_total counter") == 1
    for number in range(2):
        assert f'ewe:a_total{{kind="x",replica="{number}"}} {number}.0' in told
        assert f'ewe:router_replica_ready{{replica="{number}"}} 1.0' in told
    assert servers[0].seen[0][2]["authorization"] == "Bearer k"
    http.get(f"{url}/metrics", headers={"x-api-key": "k"})
    assert servers[0].seen[1][2]["x-api-key"] == "k"
    servers[0].play = lambda actor: actor.answer(404, b"none")
    assert 'replica="1"} 1.0' in http.get(f"{url}/metrics").text, "of those that have them"
    servers[1].play = lambda actor: actor.answer(401, {"error": {"code": "invalid_api_key"}})
    refused = http.get(f"{url}/metrics")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")


def test_a_router_that_drains_takes_nothing_in(replicas: ReplicaSet, url: str) -> None:
    replicas.is_draining = True
    assert ask(url).json()["error"]["code"] == "shutting_down"
    assert http.get(f"{url}/ready").status_code == 503


def test_a_server_that_is_gone_is_found_out_by_a_request(servers: list[Server], replicas: ReplicaSet, url: str) -> None:
    owner, other = owner_first(servers, url)
    gone = next(each for each in replicas.replicas if each.url == owner.url)
    gone.url = "http://127.0.0.1:9"  # where nobody listens
    assert ask(url).json()["by"] == other.server_port
    assert gone.state == "unreachable"
