"""configs/deploy/nginx.conf with the real nginx: keys stay, streams flow, servers that refuse are replaced."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_rig import http, httpx, wait_for
from stand_in_servers import Actor, Server, running

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
CONFIG = Path(__file__).parents[2] / "configs" / "deploy" / "nginx.conf"
CHAT = "/v1/chat/completions"


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    with running(2) as made:
        yield made


@pytest.fixture
def url(servers: list[Server], tmp_path: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    ports = {"8000": f"127.0.0.1:{port}", "8001": servers[0].server_port, "8002": servers[1].server_port}
    own = re.sub(r"\b(800[012])\b", lambda found: str(ports[found[1]]), CONFIG.read_text())
    places = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {places} {own} }}"
    (tmp_path / "nginx.conf").write_text(whole)
    command = [str(NGINX), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"]
    with subprocess.Popen(command) as process:
        wait_for(lambda: process.poll() is not None or _listens(port), "nginx listens")
        assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def by(url: str, key: str) -> int:
    answer = http.post(f"{url}{CHAT}", json={}, headers={"x-session-id": key})
    return int(answer.json()["by"])


def test_sessions_stay_and_what_one_server_keeps_is_asked_of_the_first(servers: list[Server], url: str) -> None:
    found = {key: {by(url, key) for _ in range(3)} for key in "abcdefgh"}
    assert all(len(who) == 1 for who in found.values())
    assert len(set.union(*found.values())) == 2
    for path in ("/v1/files", "/v1/batches/batch_1", "/v1/memories"):
        assert http.post(f"{url}{path}", content=b"x").json()["by"] == servers[0].server_port
    assert http.post(f"{url}{CHAT}", content=b"x" * (4 << 20) + b"x").status_code == 413


def test_a_server_that_refuses_or_is_lost_is_replaced(servers: list[Server], url: str) -> None:
    owner = next(server for server in servers if server.server_port == by(url, "a"))
    other = next(server for server in servers if server is not owner)
    for status in (503, 429):
        owner.play = lambda actor, status=status: actor.answer(status, {}, retry_after="2")  # type: ignore[misc]
        assert by(url, "a") == other.server_port
    owner.play = Actor.lose
    assert by(url, "a") == other.server_port


def test_a_stream_comes_piece_by_piece(servers: list[Server], url: str) -> None:
    read = threading.Event()

    def play(actor: Actor) -> None:
        actor.begin_stream("data: 1\n\n")
        assert read.wait(60), "the first piece has been read before the second is written"
        actor.end_stream("data: 2\n\n")

    for server in servers:
        server.play = play
    pieces = []
    with http.stream("POST", f"{url}{CHAT}", json={}) as response:
        for piece in response.iter_text():
            pieces.append(piece)
            read.set()
    assert pieces == ["data: 1\n\n", "data: 2\n\n"]
    assert isinstance(response, httpx.Response)
