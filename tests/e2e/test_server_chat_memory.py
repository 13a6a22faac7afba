"""Memory inside chats and raw prompts through HTTP: what LLM does with the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from e2e.test_chat_memory import MEMORY, PASSAGES, RIVER, TEN, chat_llm
from server_rig import http, serving, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

DOCUMENTS = [{"id": p.id, "text": p.text, "title": p.title, "veracity": p.veracity} for p in PASSAGES]
ASKED = {"documents": DOCUMENTS, "max_tokens": 10, "ignore_eos": True, "temperature": 0}


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with chat_llm(placement="in_prompt") as engine:
        yield engine


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm, ServerSettings(served_model_name=["tiny"]))) as address:
        yield f"{address}/v1"
        wait_until_idle(llm)


def post(url: str, **body: Any) -> Any:
    return http.post(url, json={"model": "tiny", **ASKED, **body})


def test_chats(llm: LLM, url: str) -> None:
    [expected] = llm.chat(RIVER, TEN, PASSAGES)
    assert expected.prompt.startswith("<user>Context: ")
    answer = post(f"{url}/chat/completions", messages=RIVER).json()
    assert answer["choices"][0]["message"]["content"] == expected.text
    assert answer["usage"]["prompt_tokens"] == expected.stats.prompt_tokens + expected.stats.unit_tokens
    response = http.post(
        f"{url}/responses",
        json={"model": "tiny", "input": "The river", "max_output_tokens": 10, "documents": DOCUMENTS, "temperature": 0},
    ).json()
    assert response["output"][0]["content"][0]["text"] == expected.text


def test_raw_prompts(llm: LLM, url: str) -> None:
    prompt = "Read: {memory}The river"
    [expected] = llm.generate(prompt, TEN, PASSAGES)
    answer = post(f"{url}/completions", prompt=prompt, echo=True).json()
    assert answer["choices"][0]["text"] == "Read: The river" + expected.text
    assert answer["usage"]["prompt_tokens"] == expected.stats.prompt_tokens + expected.stats.unit_tokens
    for wrong, problem in (
        ({"prompt": "{memory} {memory} a"}, "more than once"),
        ({"prompt": prompt, "echo": True, "logprobs": 1}, "prompt_logprobs"),
        ({"prompt": f"{prompt}{' sea' * 400}"}, f"less memory.unit_tokens {MEMORY['unit_tokens']}"),
    ):
        refused = post(f"{url}/completions", **wrong)
        assert refused.status_code == 400
        assert problem in refused.json()["error"]["message"]
