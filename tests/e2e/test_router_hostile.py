"""Clients and servers that do not keep to the rules: the router answers what can be answered and goes on."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from router_rig import CHAT, ask, owner_first, routing
from server_rig import LONG, http, httpx, wait_for
from stand_in_servers import Actor, Server, running

from ewe.server.http.listener import listen
from ewe.server.router.replicas import Replica, ReplicaSet
from ewe.server.router.router_app import create_router
from ewe.server.router.router_process import _Router
from ewe.server.settings import ServerSettings

BODY = b'{"messages": [{"role": "user", "content": "Who?"}]}'
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Server]]:
    with running(2) as made:
        yield made


@pytest.fixture(scope="module")
def router(servers: list[Server]) -> Iterator[tuple[str, ReplicaSet]]:
    with routing([server.url for server in servers], 100_000) as made:
        yield made


@pytest.fixture
def url(servers: list[Server], router: tuple[str, ReplicaSet]) -> Iterator[str]:
    """All that the tests before have left is undone; whatever a test does, the next request is answered."""
    for server in servers:
        server.seen.clear()
        server.play = lambda actor: actor.answer(200, {"by": actor.server.server_port})
    address, replicas = router
    yield address
    for server in servers:
        server.play = lambda actor: actor.answer(200, {"by": actor.server.server_port})
    assert ask(address, "And now?").status_code == 200
    wait_for(lambda: not any(each.load for each in replicas.replicas), "nothing is left")


def request(
    head: bytes = b"", body: bytes = BODY, line: bytes = b"POST /v1/chat/completions", length: bool = True
) -> bytes:
    own = b"content-length: %d\r\n" % len(body) if length else b""
    return line + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + own + head + b"\r\n" + body


def raw(url: str, sent: bytes) -> bytes:
    """What comes for these bytes until the connection ends."""
    host, port = url.removeprefix("http://").split(":")
    found = b""
    with socket.create_connection((host, int(port)), LONG) as client:
        client.sendall(sent)
        try:
            while piece := client.recv(1 << 16):
                found += piece
        except ConnectionResetError:
            pass
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def says(*pieces: bytes) -> Callable[[Actor], None]:
    """Writes bytes and closes the connection."""

    def play(actor: Actor) -> None:
        actor.wfile.write(b"".join(pieces))
        actor.lose()

    return play


CHUNKED = b"transfer-encoding: chunked\r\n"
CLIENTS = {
    "nul in a header": (request(b"x-a: a\0b\r\n"), 400),
    "latin-1 in a header": (request(b"x-a: \xe9\xff\r\n"), 200),
    "a session that is no text": (request(b"x-session-id: \xff\xfe\r\n"), 200),
    "two sessions": (request(b"x-session-id: a\r\nx-session-id: b\r\n"), 200),
    "a long session": (request(b"x-session-id: " + b"a" * 50_000 + b"\r\n"), 200),
    "a header with a space": (request(b"x a: b\r\n"), 400),
    "a header of 200 KB": (request(b"x-a: " + b"a" * 200_000 + b"\r\n"), 400),
    "many headers": (request(b"".join(b"x-%d: a\r\n" % number for number in range(3000))), 431),
    "two lengths": (request(b"content-length: 5\r\n"), 400),
    "the same length twice": (request(b"content-length: %d\r\n" % len(BODY)), 200),
    "a negative length": (request(b"content-length: -1\r\n", length=False), 400),
    "two codings": (request(CHUNKED * 2, length=False), 400),
    "a coding that is none": (request(b"transfer-encoding: gzip, chunked\r\n", length=False), 400),
    "length and chunks": (request(CHUNKED, b"2\r\n{}\r\n0\r\n\r\n"), 200),
    "a trailer": (request(CHUNKED, b"2;a=b\r\n{}\r\n0\r\nx-session-id: z\r\n\r\n", length=False), 200),
    "a chunk that is none": (request(CHUNKED, b"zz\r\n", length=False), 400),
    "chunks over the limit": (request(CHUNKED, b"30d40\r\n" + b"a" * 200_000 + b"\r\n0\r\n\r\n", length=False), 413),
    "TLS": (b"\x16\x03\x01\x02\x00" + bytes(range(256)), 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "an address as target": (request(line=b"GET http://elsewhere/"), 400),
    "no path as target": (request(line=b"OPTIONS *"), 400),
    "a tunnel": (request(line=b"CONNECT /v1/models"), 405),
    "an upgrade": (request(b"upgrade: websocket\r\nsec-websocket-key: x\r\n"), 200),
    "deep JSON": (request(body=b'{"documents": ' + b"[" * 40_000 + b"]" * 40_000 + b"}"), 200),
    "half a character": (request(body=b'{"prompt": "\\ud800"}'), 200),
    "UTF-16": (request(body='{"prompt": "a"}'.encode("utf-16")), 200),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_clients_that_do_not_keep_to_the_rules(servers: list[Server], url: str, name: str) -> None:
    sent, expected = CLIENTS[name]
    assert status(raw(url, sent)) == expected
    assert bool(servers[0].seen + servers[1].seen) == (expected == 200), "who is refused reaches nobody"


def test_requests_in_one_go_are_answered_in_their_order(servers: list[Server], url: str) -> None:
    for server in servers:
        server.play = lambda actor: actor.answer(200, actor.path.encode())
    two = [request(line=b"POST /p%d" % number).replace(b"connection: close\r\n", b"") for number in range(2)]
    told = raw(url, b"".join(two) + request(body=request(), line=b"POST /p2"))
    assert re.findall(rb"/p\d", told) == [b"/p0", b"/p1", b"/p2"], "and what looks like a request in a body is none"


def test_a_header_of_one_connection_is_not_passed_on(servers: list[Server], url: str) -> None:
    raw(url, request(b"x-hop: 1\r\nx-kept: 1\r\n").replace(b"connection: close", b"connection: close, X-Hop"))
    [(_, _, headers, _)] = servers[0].seen + servers[1].seen
    names = {name.lower() for name in headers}
    assert ("x-hop" in names, "x-kept" in names) == (False, True)


def test_servers_hear_from_the_router_alone_who_asks(servers: list[Server], url: str) -> None:
    raw(url, request(b"x-forwarded-for: 9.9.9.9\r\nX-Forwarded-For: 8.8.8.8\r\nx-forwarded-proto: https\r\n"))
    [(_, _, headers, _)] = servers[0].seen + servers[1].seen
    told = {name.lower(): value for name, value in headers.items() if name.lower().startswith("x-forwarded")}
    assert told == {"x-forwarded-for": "127.0.0.1"}


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
def test_a_body_that_does_not_come_is_not_waited_for(servers: list[Server], path: str) -> None:
    settings = ServerSettings(port=0, body_timeout=0.1)
    replicas = ReplicaSet([Replica("0", servers[0].url)])
    router, listener = _Router(create_router(replicas, 1000), replicas, (), settings), listen(settings)
    thread = threading.Thread(target=router.run, args=([listener],))
    thread.start()
    try:
        wait_for(lambda: replicas.is_ready, "it is ready")
        assert raw(f"http://127.0.0.1:{listener.getsockname()[1]}", request(line=b"POST " + path.encode())[:-5]) == b""
        wait_for(lambda: not replicas.replicas[0].load, "nothing is left")
    finally:
        router.should_exit = True
        thread.join()


def test_a_client_that_goes_within_a_stream_is_no_failure(
    servers: list[Server], url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("ewe.server"), "propagate", True)
    caplog.set_level(logging.INFO, "ewe.server")

    def play(actor: Actor) -> None:
        actor.begin_stream("data: 1\n\n", "data: 2\n\n")
        assert actor.connection.recv(1) == b"", "the router goes, too"
        actor.lose()

    for server in servers:
        server.play = play
    with http.stream("POST", f"{url}{CHAT}", json={}) as answer:
        next(answer.iter_raw())
    wait_for(lambda: any(item.getMessage() == "request" for item in caplog.records), "the line in the log")
    assert not [item for item in caplog.records if item.levelno >= logging.ERROR]


JSON = b"content-length: 2\r\n\r\n{}"
SERVERS = {
    "nothing": says(),
    "no HTTP": says(b"\0\1garbage\r\n\r\n"),
    "half a head": says(b"HTTP/1.1 200 OK\r\ncontent-"),
    "a status that is none": says(b"HTTP/1.1 999 Odd\r\n", JSON),
    "a switch of protocols": says(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxx"),
    "two lengths": says(OK, b"content-length: 3\r\n", JSON),
    "a length that is none": says(OK, b"content-length: x\r\n\r\n"),
    "nul in a header": says(OK, b"x-a: a\0b\r\n", JSON),
    "no colon": says(OK, b"xxx\r\n", JSON),
    "a header without end": says(b"x" * 500_000),
    "many headers": says(OK, b"".join(b"x-%d: a\r\n" % number for number in range(3000)), JSON),
    "a broken stream": says(OK, b"content-type: text/event-stream\r\n", CHUNKED, b"\r\n9\r\ndata: 1\n\n\r\nzz\r\n"),
    "half an error": says(b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 30\r\n\r\n{"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_does_not_speak_http_is_replaced(servers: list[Server], url: str, name: str) -> None:
    owner, other = owner_first(servers, url)
    owner.play = SERVERS[name]
    assert ask(url).json() == {"by": other.server_port}


def test_an_answer_with_length_and_chunks_is_whole(servers: list[Server], url: str) -> None:
    for server in servers:
        server.play = says(OK, b"content-length: 2\r\n", CHUNKED, b"\r\n5\r\nhello\r\n0\r\n\r\n")
    assert ask(url).text == "hello"


@pytest.mark.parametrize("head", [b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\n", b"HTTP/1.1 500 Odd\r\n"])
def test_an_error_of_any_length_is_passed_on_whole(servers: list[Server], url: str, head: bytes) -> None:
    for server in servers:
        server.play = says(head, b"content-length: 3000000\r\n\r\n", b"a" * 3_000_000)
    assert len(ask(url).content) == 3_000_000


def test_a_stream_whose_lines_end_otherwise_comes_piece_by_piece(servers: list[Server], url: str) -> None:
    read = threading.Event()

    def play(actor: Actor) -> None:
        actor.begin_stream("data: 1\r\n\r\n", "data: 2\r\n\r\n")
        actor.end_stream("data: 3\r\n\r\n" if read.wait(10) else "held back")

    for server in servers:
        server.play = play
    found = ""
    with http.stream("POST", f"{url}{CHAT}", json={}) as answer:
        for piece in answer.iter_text():
            found += piece
            read.set()
    assert found == "data: 1\r\n\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n"


def test_nobody_is_led_to_the_servers_behind(servers: list[Server], url: str) -> None:
    def redirect(actor: Actor) -> None:
        place = "http://elsewhere/x" if actor.path == "/away" else f"{actor.server.url}/v1/x?y"
        actor.answer(307, b"", location=place)

    for server in servers:
        server.play = redirect
    plain = httpx.Client(base_url=url)
    assert plain.post("/v1/x/?y").headers["location"] == "/v1/x?y"
    assert plain.post("/away").headers["location"] == "http://elsewhere/x"
    for path in ("/metrics/", "/ping/"):
        headers = plain.get(path, headers={"host": "elsewhere"}).headers
        assert headers["location"] == "/v1/x?y", "the router itself leads nobody anywhere"
    plain.close()


@pytest.mark.parametrize("told", [b"{{{{ # \0", b"a \xff\n", b"# TYPE a-b gauge\na-b 1\n"])
def test_metrics_that_are_none_are_left_out(servers: list[Server], url: str, told: bytes) -> None:
    servers[0].play = lambda actor: actor.answer(200, told)
    servers[1].play = lambda actor: actor.answer(200, b"# TYPE a counter\na_total 7\n")
    answer = http.get(f"{url}/metrics")
    assert answer.status_code == 200
    assert 'a_total{replica="1"} 7.0' in answer.text
    assert 'ewe:router_replica_ready{replica="0"} 1.0' in answer.text
