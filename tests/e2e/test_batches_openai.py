"""Files and batches with the real openai client: what it sends, waits for and fetches; whose they are; restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from script_rig import scripted_llm
from server_rig import httpx, serving, wait_for

from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

openai = pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("multipart", reason="python-multipart is not installed")

CHAT = "/v1/chat/completions"
ENDED = {"completed", "failed", "cancelled", "expired"}


def script(prompt: str, units: int) -> str:
    """The answer repeats the question."""
    return prompt.rpartition("|>")[0].rpartition("|>")[2].removesuffix("<|assistant")


def line(name: str, content: str = "", url: str = CHAT, **fields: Any) -> str:
    body = {"messages": [{"role": "user", "content": content or f"say {name}"}], "max_tokens": 40, **fields}
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body}) + "\n"


@contextmanager
def server(folder: Path, **settings: Any) -> Iterator[Any]:
    """Gives a function from a key to its client."""
    with scripted_llm("none", script, {"scheduler": {"max_num_seqs": 4}, "policy": "plain"}) as llm:
        app = create_app(llm, ServerSettings(batch_folder=folder, **settings))
        with serving(app) as url, httpx.Client(timeout=60) as transport:

            def client(key: str = "none") -> Any:
                return openai.OpenAI(
                    base_url=f"{url}/v1", api_key=key, max_retries=0, _strict_response_validation=True
                )

            yield client


def upload(client: Any, lines: Sequence[str], name: str = "requests.jsonl") -> Any:
    return client.files.create(file=(name, "".join(lines).encode()), purpose="batch")


def run(client: Any, lines: Sequence[str], endpoint: str = CHAT, **fields: Any) -> Any:
    """A batch that has ended."""
    file = upload(client, lines)
    batch = client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", **fields)
    assert batch.status == "validating"
    return ended(client, batch.id)


def ended(client: Any, batch_id: str) -> Any:
    wait_for(lambda: client.batches.retrieve(batch_id).status in ENDED, "the batch ends")
    return client.batches.retrieve(batch_id)


def results(client: Any, file_id: str) -> dict[str, Any]:
    """Lines of a file by the request's name, each once."""
    found = [json.loads(row) for row in client.files.content(file_id).text.splitlines()]
    assert len({row["custom_id"] for row in found}) == len(found) == len({row["id"] for row in found})
    return {row["custom_id"]: row for row in found}


def test_a_batch_from_upload_to_results(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(30)]
    with server(tmp_path) as client_of:
        client = client_of()
        batch = run(client, [line(name) for name in names] + [line("bad", temperature=-1)], metadata={"for": "test"})
        assert (batch.status, batch.metadata) == ("completed", {"for": "test"})
        assert batch.request_counts.to_dict() == {"total": 31, "completed": 30, "failed": 1}
        assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at < batch.expires_at
        answered = results(client, batch.output_file_id)
        assert answered.keys() == set(names)
        for name, row in answered.items():
            assert row["response"]["status_code"] == 200
            assert row["response"]["request_id"]
            assert row["error"] is None
            assert row["response"]["body"]["choices"][0]["message"]["content"] == f"say {name}"
        [refused] = results(client, batch.error_file_id).values()
        assert (refused["custom_id"], refused["response"]["status_code"]) == ("bad", 400)
        assert "temperature" in refused["response"]["body"]["error"]["message"]
        listed = client.files.list(purpose="batch_output").data
        assert {file.id for file in listed} == {batch.output_file_id, batch.error_file_id}
