"""Chat completions of LangChain and LlamaIndex: citations and verdicts come through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from builtin_rig import server
from server_rig import PROMPT, openai_client

openai = pytest.importorskip("openai", reason="the openai client is not installed")
LENGTH = 26
MESSAGES: Any = [{"role": "user", "content": PROMPT}]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server() as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture(scope="module")
def expected(url: str) -> tuple[list[Any], list[Any]]:
    """The citations and the sentences that the openai client gets."""
    answer = openai_client(url).chat.completions.create(model="builtin", messages=MESSAGES, max_tokens=LENGTH)
    annotations = [item.model_dump() for item in answer.choices[0].message.annotations]
    assert annotations
    assert answer.ewe["sentences"]
    return annotations, answer.ewe["sentences"]


def test_langchain_messages_keep_citations_and_verdicts(url: str, expected: tuple[list[Any], list[Any]]) -> None:
    pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    from ewe.integrations.langchain_chat import ChatEWE

    model = ChatEWE(base_url=f"{url}/v1", api_key="none", model="builtin", max_tokens=LENGTH, max_retries=0)
    whole = model.invoke(PROMPT)
    chunks = iter(model.stream(PROMPT))
    streamed = next(chunks)
    for chunk in chunks:
        streamed += chunk
    for message in (whole, streamed):
        told = message.additional_kwargs["annotations"], message.response_metadata["ewe"]["sentences"]
        assert told == expected
    assert whole.content == streamed.content


def test_llama_index_answers_keep_them_in_their_raw_answer(url: str) -> None:
    library = pytest.importorskip(
        "llama_index.llms.openai_like", reason="llama-index-llms-openai-like is not installed"
    )
    from llama_index.core.llms import ChatMessage

    model = library.OpenAILike(
        model="builtin", api_base=f"{url}/v1", api_key="none", is_chat_model=True, max_tokens=LENGTH, max_retries=0
    )
    raw = model.chat([ChatMessage(role="user", content=PROMPT)]).raw  # drawn at a temperature of LlamaIndex's own
    assert raw.choices[0].message.annotations[0].type == "url_citation"
    assert raw.ewe["sentences"]
