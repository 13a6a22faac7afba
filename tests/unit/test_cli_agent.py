"""`ewe agent`: what it prints, what its model may search, and how it ends without an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.longterm.records import MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.verification.endpoint.protocol import CompletionError
from ewe.verification.judges.load import load_judge

ASKED = ["agent", "When did the bridge open?", "--model", "openai:tiny@http://127.0.0.1:9/v1"]
SEARCH = 'Thought: I look.\nAction: {"tool": "search_memory", "arguments": {"query": "When did the bridge open?"}}'
LOOK_UP = 'Thought: And there.\nAction: {"tool": "look_up", "arguments": {"query": "bridge"}}'


class Script:
    """Replies in turn; then it cannot be reached."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def complete(self, prompts: list[str]) -> list[str]:
        if not self.replies:
            raise CompletionError("nobody answers")
        return [self.replies.pop(0)]


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch):
    """Has the endpoint's model reply in turn."""
    return lambda *replies: monkeypatch.setattr(
        "ewe.longterm.agent.agent.open_endpoint", lambda *_, **__: Script(*replies)
    )


def test_it_searches_memories_and_passages_and_prints_its_steps(tmp_path: Path, says) -> None:
    with MemoryStore.create(tmp_path / "memories") as store:
        memories = MemoryService(store, judge=load_judge("builtin"))
        memories.add("The bridge opened in 1932.", Scope("ann"), MemorySource("user", "ann", 0.9))
    passage = {"id": "p1", "text": "The old bridge opened in 1932.", "title": "Bridges"}
    (tmp_path / "passages.jsonl").write_text(json.dumps(passage))
    says(SEARCH, LOOK_UP, "Thought: Both say so.\nAnswer: In 1932 (M1, E1).")
    more = ["--memories", str(tmp_path / "memories"), "--datastore", str(tmp_path / "passages.jsonl"), "--user", "ann"]
    result = CliRunner().invoke(app, [*ASKED, *more, "--set", "retrieval.retriever=bm25", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["answer"] == "In 1932 (M1, E1)."
    assert [used["label"] for used in told["memories"]] == ["M1"]
    assert told["passages"]["E1"]["id"] == "p1"


def test_without_an_answer_it_says_why_and_exits_with_1(says) -> None:
    says("Thought: Hm.\nAnswer: In 1932.")
    result = CliRunner().invoke(app, ASKED)
    assert (result.exit_code, "Answer: In 1932." in result.stdout) == (0, True)
    says()
    result = CliRunner().invoke(app, ASKED)
    assert result.exit_code == 1
    assert "Stopped: model_failed, nobody answers" in result.stdout


def test_a_slip_in_the_models_name_is_told_at_once() -> None:
    result = CliRunner().invoke(app, ["agent", "When?", "--model", "smolm2"])
    assert result.exit_code == 2
    assert "did you mean smollm2?" in result.stderr
