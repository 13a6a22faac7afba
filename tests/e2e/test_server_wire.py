"""What goes over the wire, seen without a client's help: refusals, nulls, records, and the guide's own lines."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_rig import LONG, PROMPT, events_of, http, serving, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

MESSAGES: Any = [{"role": "user", "content": PROMPT}]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "server.md"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LLM(model="builtin") as llm:
        with serving(create_app(llm, ServerSettings(max_n=4, max_tokens=200))) as address:
            yield address
        wait_until_idle(llm)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("tools", [{"type": "web_search"}]), ("tool_choice", "required")),
        *(("response_format", {"type": "grammar"}), ("audio", {"voice": "x"}), ("prediction", {"type": "content"})),
        *(("n", 5), ("n", 0), ("max_tokens", 201), ("temperature", -1), ("top_p", 0), ("stop", [""])),
        *(("messages", []), ("stream", "yes"), ("ewe", {"events": 3}), ("best_of", 2), ("seed", 1 << 63)),
        *(("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]),),
        *(("messages", [{"role": "tool", "content": "x"}]), ("messages", [{"role": "user", "content": "\ud800"}])),
    ],
)
def test_what_is_not_supported_is_refused_by_name(url: str, field: str, value: Any) -> None:
    body = {"model": "builtin", "messages": MESSAGES, field: value}
    answer = http.post(f"{url}/v1/chat/completions", content=_json(body), headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["param"].split(".")[0] == field
    assert field in error["message"]
    assert answer.headers["x-request-id"]


def test_null_is_the_same_as_leaving_out(url: str) -> None:
    names = ("temperature", "top_p", "stop", "tools", "response_format", "seed", "stream_options", "user", "logprobs")
    body = {"messages": MESSAGES, "max_tokens": 5, **dict.fromkeys(names)}
    assert http.post(f"{url}/v1/chat/completions", json=body).status_code == 200


def test_records_end_with_done_and_silence_with_comments(url: str) -> None:
    body = {"messages": MESSAGES, "max_tokens": 30, "stream": True}
    answer = http.post(f"{url}/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events_of(answer.text)[-1] == "[DONE]"
    records = answer.text.split("\n\n")
    assert all(record.startswith(("data: ", ": ")) for record in records[:-1])
    assert [key for key, _ in itertools.groupby(records) if "usage" in key] == [], "nobody asked for usage"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_curl_lines_of_the_guide(url: str) -> None:
    blocks = [block.partition("```")[0] for block in GUIDE.read_text(encoding="utf-8").split("```sh\n")[1:]]
    lines = [block for block in blocks if block.startswith("curl ")]
    assert lines
    for line in lines:
        # As it stands, but for the address and the progress bar.
        command = line.replace("curl http://127.0.0.1:8000", f"curl --no-progress-meter {url}")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=LONG)
        assert json.loads(done.stdout)["choices"][0]["message"]["content"], done.stdout


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()
