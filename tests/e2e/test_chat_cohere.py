"""/v2/chat as the cohere package meets it: citations of documents and of the datastore, streams, refusals, keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from router_rig import routing
from server_rig import serving, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.http.error_responses import RefusedError
from ewe.server.settings import ServerSettings
from ewe.types import Generation

cohere = pytest.importorskip("cohere", reason="the cohere client is not installed")

KEY = "a-key"
# Its answer has two sentences and soon ends.
QUESTION = "Compare the births of Starard Trillow and Nuruna Flurton."
FIRST = "Starard Trillow was born in 1925 in Gavwick."
SECOND = "Nuruna Flurton was born in Bengate."
DOCUMENTS: Any = ["Bees are insects.", {"id": "own", "data": {"title": "A list", "snippet": SECOND, "page": 3}}]
MESSAGES: Any = [{"role": "user", "content": QUESTION}]


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM("builtin") as opened:
        yield opened


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm, ServerSettings(api_key=KEY, max_tokens=300))) as address:
        yield address


@pytest.fixture(autouse=True)
def nothing_is_left(llm: LLM) -> Iterator[None]:
    yield
    wait_until_idle(llm)


def client_of(url: str, key: str = KEY) -> Any:
    return cohere.ClientV2(api_key=key, base_url=url)


@pytest.fixture
def client(url: str) -> Any:
    return client_of(url)


def ask(client: Any, **more: Any) -> Any:
    return client.chat(**{"model": "builtin", "messages": MESSAGES, "max_tokens": 100, **more})


def listen(client: Any, **more: Any) -> list[Any]:
    return list(client.chat_stream(**{"model": "builtin", "messages": MESSAGES, "max_tokens": 100, **more}))


def test_documents_are_cited(client: Any) -> None:
    answer = ask(client, documents=DOCUMENTS)
    [content] = answer.message.content
    assert content.text.strip() == f"{FIRST} {SECOND}"
    assert [citation.text for citation in answer.message.citations] == [FIRST, SECOND]
    assert [content.text[citation.start : citation.end] for citation in answer.message.citations] == [FIRST, SECOND]
    own = answer.message.citations[1].sources[0]
    assert (own.type, own.id) == ("document", "own")
    assert own.document == {"id": "own", "title": "A list", "snippet": SECOND, "page": 3}
    named = {source.id for citation in answer.message.citations for source in citation.sources}
    assert "doc:0" not in named, "bees bear nothing out"
    assert named - {"own"} <= {source["id"] for source in answer.ewe["sources"]}, "the rest is the datastore's"
    assert answer.finish_reason == "COMPLETE"
    stats = answer.ewe["stats"]
    assert answer.usage.tokens.input_tokens == stats["prompt_tokens"] + stats["unit_tokens"]
    assert answer.usage.tokens.output_tokens == stats["tokens_kept"] + stats["tokens_discarded"]


def test_a_text_without_an_id_is_called_by_its_number(client: Any) -> None:
    answer = ask(client, documents=[{"data": {"who": "bees", "what": "insects"}}, SECOND])
    sources = {source.id: source.document for citation in answer.message.citations for source in citation.sources}
    assert sources["doc:1"] == {"id": "doc:1", "text": SECOND}
    assert "who: bees\nwhat: insects" in {source["text"] for source in answer.ewe["sources"]}


def test_without_documents_the_datastore_is_cited(client: Any) -> None:
    answer = ask(client)
    assert [citation.text for citation in answer.message.citations] == [FIRST, SECOND]
    for citation in answer.message.citations:
        assert all(source.document["text"] for source in citation.sources)


@pytest.mark.parametrize("mode", ["OFF", "DISABLED"])
def test_citations_can_be_left_out(client: Any, mode: str) -> None:
    assert ask(client, documents=DOCUMENTS, citation_options={"mode": mode}).message.citations is None


@pytest.mark.parametrize("more", [{}, {"documents": DOCUMENTS, "citation_options": {"mode": "fast"}}])
def test_a_stream_adds_up_to_the_answer(client: Any, more: Any) -> None:
    whole, events = ask(client, **more), listen(client, **more)
    kinds = [event.type for event in events]
    texts = [event.delta.message.content.text for event in events if event.type == "content-delta"]
    cited = [event.delta.message.citations for event in events if event.type == "citation-start"]
    assert "".join(texts) == whole.message.content[0].text
    assert cited == whole.message.citations
    assert kinds == [
        *("message-start", "content-start"),
        *["content-delta"] * len(texts),
        *["citation-start", "citation-end"] * len(cited),
        *("content-end", "message-end"),
    ]
    assert events[-1].delta.finish_reason == "COMPLETE"
    assert events[-1].delta.usage == whole.usage


def test_why_an_answer_ended(client: Any) -> None:
    answer = ask(client, stop_sequences=["in Gav"], p=0.9, k=0, seed=1, frequency_penalty=0.0)
    assert answer.finish_reason == "STOP_SEQUENCE"
    assert answer.message.content[0].text.strip() == "Starard Trillow was born in 1925"
    assert ask(client, max_tokens=4).finish_reason == "MAX_TOKENS"
    assert listen(client, max_tokens=4)[-1].delta.finish_reason == "MAX_TOKENS"


def test_a_conversation_goes_on_with_what_was_answered(client: Any) -> None:
    first = ask(client, documents=DOCUMENTS)
    more = [{"role": "system", "content": "Be brief."}, *MESSAGES, first.message, *MESSAGES]
    second = ask(client, messages=more, max_tokens=4)
    assert second.ewe["stats"]["prompt_tokens"] > first.ewe["stats"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]}, "tools"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "tool_call_id"),
        ({"logprobs": True}, "logprobs"),
        ({"safety_mode": "STRICT"}, "safety_mode"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "image_url"),
        ({"documents": [{"id": "a", "data": {"text": "b"}}, {"id": "a", "data": {"text": "c"}}]}, "same id"),
    ],
)
def test_what_is_not_there_is_refused_by_name(client: Any, more: Any, named: str) -> None:
    with pytest.raises(cohere.BadRequestError) as caught:
        ask(client, **more)
    assert named in caught.value.body["message"]


def test_errors_are_coheres(url: str, client: Any) -> None:
    with pytest.raises(cohere.UnauthorizedError) as caught:
        ask(client_of(url, "another"))
    assert "needs an API key" in caught.value.body["message"]
    with pytest.raises(cohere.NotFoundError):
        ask(client, model="another")


def test_a_stream_that_fails_ends_with_the_reason(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(generation: Generation, own_deadline: bool) -> None:
        raise RefusedError(500, "NaN in the logits", code="engine_error", may_retry=False)

    monkeypatch.setattr("ewe.server.answering.streaming.check_finished", fail)
    last = listen(client)[-1]
    assert (last.type, last.delta.finish_reason, last.delta.error) == ("message-end", "ERROR", "NaN in the logits")


def test_the_router_passes_it_on(url: str) -> None:
    with routing([url], 100_000) as (router, _):
        client = client_of(router)
        assert ask(client, documents=DOCUMENTS).message.citations
        assert [event.type for event in listen(client, documents=DOCUMENTS)].count("citation-start") == 2
        with pytest.raises(cohere.UnauthorizedError):
            ask(client_of(router, "another"))


def test_models_are_told_in_coheres_form(client: Any) -> None:
    [model] = client.models.list().models
    assert (model.name, model.endpoints, model.finetuned) == ("builtin", ["chat"], False)
    assert model.context_length > 0
    assert client.models.list(endpoint="chat").models == [model]
    assert client.models.list(endpoint="embed").models == []
    assert client.models.get("builtin") == model
    with pytest.raises(cohere.NotFoundError, match="no model 'another'"):
        client.models.get("another")


def test_texts_become_tokens_and_back(llm: LLM, client: Any) -> None:
    told = client.tokenize(text=FIRST, model="builtin")
    assert told.tokens == llm.tokenizer(FIRST, add_special_tokens=False)["input_ids"]
    assert len(told.token_strings) == len(told.tokens)
    assert client.detokenize(tokens=told.tokens, model="builtin").text == FIRST
    with pytest.raises(cohere.BadRequestError) as caught:
        client.detokenize(tokens=[10**6], model="builtin", offline=False)
    assert "is not a token id" in caught.value.body["message"]
