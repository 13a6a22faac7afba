"""What an agent takes as its model, and how an LLM of this engine is asked: template, parameters, memories, ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ewe import LLM, Config, SamplingParams, VeriMemAgent
from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.agent import Stopped
from ewe.longterm.agent.agent import STOP, as_completer
from ewe.verification.endpoint.completer import EndpointCompleter
from ewe.verification.endpoint.protocol import LocalCompleter

ANSWER = "Thought: easy\nAnswer: 4"


class Scripted(LLM):
    """An LLM without an engine: answers with what it is given, and notes how it was asked."""

    def __init__(self, text: str = ANSWER, reason: str = "stop", template: str | None = None, path: Any = None) -> None:
        self.config = Config.from_mapping({"longterm": {"path": path}})
        self.asked: list[tuple[str, Any, SamplingParams, Any]] = []
        self._answer = SimpleNamespace(text=text, finish_reason=reason, error="")
        self._template = template

    @property
    def tokenizer(self) -> Any:
        return SimpleNamespace(chat_template=self._template)

    def generate(self, prompts: Any, params: Any = None, *rest: Any, memory: Any = None, **more: Any) -> Any:
        self.asked.append(("generate", prompts, params, memory))
        return [self._answer]

    def chat(self, messages: Any, params: Any = None, *rest: Any, memory: Any = None, **more: Any) -> Any:
        self.asked.append(("chat", messages, params, memory))
        return [self._answer]


def test_an_llm_is_asked_through_its_template_if_it_has_one() -> None:
    for template, way in ((None, "generate"), ("{{ messages }}", "chat")):
        llm = Scripted(f"{ANSWER}\n", template=template)
        result = VeriMemAgent(llm).run("Twice 2?")
        assert (result.answer, result.stopped) == ("4", Stopped.ANSWERED)
        [(method, prompt, params, memory)] = llm.asked
        assert (method, params.stop, params.temperature, memory) == (way, STOP, 0.0, None)
        text = prompt if way == "generate" else prompt[0]["content"]
        assert text.endswith("Write step 1 of at most 8.")


def test_the_callers_parameters_are_used_and_the_engine_s_memories_are_not(tmp_path: Any) -> None:
    llm = Scripted(path=str(tmp_path))
    params = SamplingParams(max_tokens=7, temperature=0.5)
    VeriMemAgent(llm, params=params).run("?")
    [(_, _, used, memory)] = llm.asked
    assert (used, memory.scope) == (params, "none")


@pytest.mark.parametrize("reason", ["length", "timeout", "abort"])
def test_an_answer_that_was_cut_is_no_step(reason: str) -> None:
    result = VeriMemAgent(Scripted(reason=reason)).run("?")
    assert (result.answer, result.stopped) == (None, Stopped.MODEL_FAILED)
    assert f"ended with '{reason}'" in result.error


def test_what_can_be_a_model() -> None:
    endpoint = as_completer("openai:name@http://127.0.0.1:1/v1")
    assert isinstance(endpoint, EndpointCompleter)
    assert endpoint.model == "name"
    local = LocalCompleter(lambda prompts: [ANSWER for _ in prompts])
    assert as_completer(local) is local
    for wrong in ("builtin", "openai:name"):
        with pytest.raises(ConfigError, match="openai:MODEL@URL"):
            as_completer(wrong)
    with pytest.raises(ConfigError, match="got SimpleNamespace"):
        as_completer(SimpleNamespace())  # type: ignore[arg-type]


def test_what_the_engine_refuses_ends_the_run() -> None:
    class Full(Scripted):
        def generate(self, *arguments: Any, **options: Any) -> Any:
            raise InvalidRequestError("the prompt has 9 tokens too many")

    result = VeriMemAgent(Full()).run("?")
    assert (result.stopped, "9 tokens too many" in result.error) == (Stopped.MODEL_FAILED, True)
