"""The agent over HTTP: an endpoint with OpenAI's wire format and a script behind it, and this engine's own server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_rig import tiny_llm
from real_models import model_path
from server_rig import LONG, serving

from ewe import LLM, SamplingParams, VeriMemAgent
from ewe.longterm.agent import Stopped
from ewe.longterm.agent.agent import STOP
from ewe.longterm.records import MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.retrieval.open_retriever import open_retriever
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings
from ewe.verification.endpoint.completer import EndpointCompleter
from ewe.verification.judges.load import load_judge

fastapi = pytest.importorskip("fastapi", reason="the server's packages are not installed")
QUESTION = "When was the bridge of Orvane opened?"
WRONG, RIGHT = "The bridge of Orvane was opened in 1923.", "The bridge of Orvane was opened in 1932."


class Endpoint:
    """Answers POST /v1/chat/completions; a little policy reads the prompt as a model would. `requests`: what came."""

    def __init__(self, fails: bool = False) -> None:
        self.requests: list[dict[str, Any]] = []
        self.fails = fails

    def app(self) -> Any:
        app = fastapi.FastAPI()

        @app.post("/v1/chat/completions")
        def complete(body: dict[str, Any]) -> Any:
            self.requests.append(body)
            if self.fails and len(self.requests) > 1:
                return fastapi.responses.JSONResponse({"error": {"message": "no such model", "type": "x"}}, 404)
            text = self.reply(body["messages"][-1]["content"])
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
            return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
                    "choices": [choice], "usage": usage}  # fmt: skip

        return app

    @staticmethod
    def reply(prompt: str) -> str:
        observations = [json.loads(line) for line in re.findall(r"^Observation: (.*)$", prompt, re.MULTILINE)]
        if not observations:
            return (
                'Thought: Memory may know.\nAction: {"tool": "search_memory", "arguments": {"query": "bridge Orvane"}}'
            )
        if len(observations) == 1:
            [memory] = observations[0]["result"]["memories"]
            doubt = "uncertain" if "UNCERTAINTY" in memory["status"] else "sure"
            action = {"tool": "look_up", "arguments": {"query": "bridge of Orvane opened", "most": 1}}
            return f"Thought: {memory['memory']} is {doubt}; I look it up.\nAction: {json.dumps(action)}"
        year = re.search(r"\d{4}", observations[1]["result"]["passages"][0]["text"])
        assert year is not None
        return f"Thought: E1 settles it against M1.\nAnswer: It was opened in {year[0]} (E1); M1 is wrong."


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryStore.create(tmp_path / "memories") as store:
        yield MemoryService(store, judge=load_judge("builtin"))


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    path = tmp_path / "passages.jsonl"
    path.write_text(json.dumps({"id": "p", "text": RIGHT, "source": "register", "veracity": 0.9}) + "\n")
    return path


def test_over_http_it_finds_doubts_looks_up_and_answers(memories: MemoryService, passages: Path) -> None:
    wrong = memories.add(WRONG, Scope("ann"), MemorySource("user", "ann", 0.6))
    endpoint = Endpoint()
    with serving(endpoint.app()) as url:
        agent = VeriMemAgent(f"openai:some-model@{url}/v1", memories, lookup=open_retriever(passages))
        result = agent.run(QUESTION, user="ann")
    assert (result.answer, result.stopped) == ("It was opened in 1932 (E1); M1 is wrong.", Stopped.ANSWERED)
    assert result.steps[1].thought == "M1 is uncertain; I look it up."
    [used] = result.memories
    assert (used.memory.id, used.cited) == (wrong.id, True)
    assert used.veracity < wrong.veracity
    assert memories.store.get(Scope("ann"), wrong.id).veracity == used.veracity
    assert result.passages["E1"].source == "register"
    assert [request["model"] for request in endpoint.requests] == ["some-model"] * 3
    assert all(request["stop"] == ["\nObservation:"] for request in endpoint.requests)
    assert result.transcript().count("Observation: ") == 2


def test_the_guide_s_example_runs(passages: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "agent.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    monkeypatch.chdir(passages.parent)
    with serving(Endpoint().app()) as url:
        exec(compile(code.replace("http://127.0.0.1:8000", url), "agent.md", "exec"), {"__name__": "guide"})
    told = capsys.readouterr().out
    assert "Answer: It was opened in 1932 (E1); M1 is wrong." in told
    assert re.search(r"^\[\('M1', 0\.\d+, 0\.\d+, True\)\]$", told, re.MULTILINE)


def test_an_endpoint_that_fails_on_the_way_ends_the_run_with_its_message(memories: MemoryService) -> None:
    memories.add(WRONG, Scope("ann"), MemorySource("user", "ann", 0.6))
    with serving(Endpoint(fails=True).app()) as url:
        result = VeriMemAgent(f"openai:some-model@{url}/v1", memories).run(QUESTION, user="ann")
    assert (result.answer, result.stopped, len(result.steps)) == (None, Stopped.MODEL_FAILED, 2)
    assert "no such model" in result.error
    assert [one.memory.content for one in result.memories] == [WRONG]


def test_a_prompt_that_does_not_fit_the_model_ends_the_run_with_the_reason() -> None:
    with tiny_llm() as llm:
        assert llm.tokenizer.chat_template is None
        result = VeriMemAgent(llm).run("?")
    assert (result.answer, result.stopped) == (None, Stopped.MODEL_FAILED)
    assert "model.max_model_len 400" in result.error


@pytest.mark.skipif(not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights here")
def test_this_engine_s_server_and_the_model_in_the_same_process_give_the_same_run() -> None:
    params = SamplingParams(max_tokens=200, stop=STOP)
    with LLM("builtin", datastore=None, verifier=None) as llm:
        here = VeriMemAgent(llm, params=params).run(QUESTION)
        with serving(create_app(llm, ServerSettings(max_prompt_tokens=4000))) as url:
            limits = {"max_tokens": 200, "request_timeout_s": LONG, "time_limit_s": LONG}
            patient = EndpointCompleter("builtin", url, stop=STOP, **limits)
            there = VeriMemAgent(patient).run(QUESTION)
    for result in (here, there):  # it was taught to write encyclopedia articles, no steps
        assert (result.answer, result.stopped) == (None, Stopped.MALFORMED), result.error
        assert result.error
    assert here.steps[0].replies == there.steps[0].replies


@pytest.mark.skipif(not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights here")
def test_steps_of_an_engine_with_memories_neither_recall_nor_teach(tmp_path: Path) -> None:
    with LLM("builtin", longterm=tmp_path / "memories") as llm:
        service = llm.memories.service
        known = service.add(RIGHT, Scope(), MemorySource("user", "ann", 0.9))
        assert VeriMemAgent(llm, service).run(QUESTION).answer is None
        assert llm.memories.wait(LONG)
        assert not any(llm.memories.counts.values())
        assert service.store.get(Scope(), known.id).recall_count == 0
        llm.generate(QUESTION, SamplingParams(max_tokens=5))  # what would have been recalled otherwise
        assert llm.memories.wait(LONG)
        assert llm.memories.counts["recalled"]
