"""A server with batches in this process, whose answers repeat the question, and the real openai client for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from script_rig import scripted_llm
from server_rig import serving, wait_for

from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("multipart", reason="python-multipart is not installed")

CHAT = "/v1/chat/completions"
ENDED = {"completed", "failed", "cancelled", "expired"}
PLACES = 4


class Script:
    """Answers repeat the question; those that hold `wait` come when the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, prompt: str, units: int) -> str:
        question = prompt.rpartition("<|assistant|>")[0].rpartition("|>")[2]
        if "wait" in question:
            self.gate.wait(60)
        return question


class Server:
    """A server in this process; client: makes a client with a key of its own."""

    def __init__(self, url: str, app: Any, script: Script) -> None:
        self.url, self.app, self.script = url, app, script

    def client(self, key: str = "one") -> Any:
        return openai.OpenAI(
            base_url=f"{self.url}/v1", api_key=key, max_retries=0, _strict_response_validation=True, timeout=60
        )


@contextmanager
def server(folder: Path, **settings: Any) -> Iterator[Server]:
    script = Script()
    with scripted_llm("none", script, {"scheduler": {"max_num_seqs": PLACES}, "policy": "plain"}) as llm:
        app = create_app(llm, ServerSettings(batch_folder=folder, **settings))
        with serving(app) as url:
            yield Server(url, app, script)
        script.gate.set()  # only now, so that what waits is broken off
        app.state.batches.store.close()  # the server was broken off, but not the process that it ran in


def line(name: str, content: str = "", url: str = CHAT, **fields: Any) -> str:
    body = {"messages": [{"role": "user", "content": content or f"say {name}"}], "max_tokens": 40, **fields}
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body}) + "\n"


def create(client: Any, lines: Sequence[str], endpoint: str = CHAT, **fields: Any) -> Any:
    file = client.files.create(file=("requests.jsonl", "".join(lines).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", **fields)
    assert batch.status == "validating"
    return batch


def ended(client: Any, batch: Any) -> Any:
    wait_for(lambda: client.batches.retrieve(batch.id).status in ENDED, "the batch ends")
    return client.batches.retrieve(batch.id)


def results(client: Any, file_id: str) -> dict[str, Any]:
    """Lines of a file by the request's name, each once."""
    found = [json.loads(row) for row in client.files.content(file_id).text.splitlines()]
    assert len({row["custom_id"] for row in found}) == len(found) == len({row["id"] for row in found})
    return {row["custom_id"]: row for row in found}


def counts(batch: Any) -> tuple[int, int, int]:
    return batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed
