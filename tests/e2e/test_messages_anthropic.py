"""/v1/messages as the anthropic package meets it: citations of what is brought along, streams, refusals, keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from late_import import late_import
from router_rig import routing
from server_rig import http, serving, wait_for, wait_until_idle

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.http.error_responses import RefusedError
from ewe.server.settings import ServerSettings
from ewe.types import Generation

anthropic = late_import("anthropic", reason="the anthropic client is not installed")

KEY = "a-key"
# Its answer has two sentences and soon ends.
QUESTION = "Compare the births of Starard Trillow and Nuruna Flurton."
FIRST = "Starard Trillow was born in 1925 in Gavwick."
SECOND = "Nuruna Flurton was born in Bengate."
PLAIN = f"A chronicle. {FIRST} That is all."
CITED = {"enabled": True}


def search_result(*texts: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    told = {"source": "https://example.org/a", "title": "A list", "citations": CITED}
    return {"type": "search_result", "content": content, **told, **more}


def document(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, "citations": CITED, **more}


PLAIN_DOCUMENT = document({"type": "text", "media_type": "text/plain", "data": PLAIN}, title="Chronicle")
IN_BLOCKS = document(
    {"type": "content", "content": [{"type": "text", "text": FIRST}, {"type": "text", "text": SECOND}]}
)
OTHER = search_result("Bees are insects.", title="Bees")
RESULT = search_result("The town has a market.", SECOND)
BROUGHT = (OTHER, RESULT)


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
    return anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)


@pytest.fixture
def client(url: str) -> Any:
    return client_of(url)


def asked(*brought: Any, **more: Any) -> dict[str, Any]:
    content = [*brought, {"type": "text", "text": QUESTION}]
    return {"model": "builtin", "max_tokens": 100, "messages": [{"role": "user", "content": content}], **more}


def cited(message: Any) -> dict[str, list[dict[str, Any]]]:
    """The citations of each block that has any."""
    blocks = [block for block in message.content if block.citations]
    return {block.text.strip(): [citation.model_dump() for citation in block.citations] for block in blocks}


def test_search_results_are_cited_by_their_blocks(client: Any) -> None:
    message = client.messages.create(**asked(OTHER, RESULT))
    assert "".join(block.text for block in message.content).strip() == f"{FIRST} {SECOND}"
    assert cited(message) == {
        SECOND: [
            {
                "type": "search_result_location",
                "cited_text": SECOND,
                "search_result_index": 1,
                "source": "https://example.org/a",
                "title": "A list",
                "start_block_index": 1,
                "end_block_index": 2,
            }
        ]
    }
    assert (message.role, message.stop_reason, message.stop_sequence) == ("assistant", "end_turn", None)
    stats = message.ewe["stats"]
    read = stats["prompt_tokens"] + stats["unit_tokens"]
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens == read
    assert message.usage.cache_read_input_tokens == stats["unit_tokens_cached"]
    assert message.usage.output_tokens == stats["tokens_kept"] + stats["tokens_discarded"]


def test_documents_are_cited_by_characters_or_blocks(client: Any) -> None:
    found = cited(client.messages.create(**asked(PLAIN_DOCUMENT, RESULT, IN_BLOCKS)))
    first = {item["type"]: item for item in found[FIRST]}
    place = first["char_location"]
    assert PLAIN[place["start_char_index"] : place["end_char_index"]] == place["cited_text"] == FIRST
    assert (place["document_index"], place["document_title"]) == (0, "Chronicle")
    block = first["content_block_location"]
    assert (block["document_index"], block["start_block_index"], block["end_block_index"]) == (1, 0, 1)
    second = {item["type"]: item for item in found[SECOND]}
    assert second["content_block_location"]["start_block_index"] == 1
    assert second["search_result_location"]["search_result_index"] == 0


def test_what_may_not_be_cited_is_not(client: Any) -> None:
    hidden = [search_result(SECOND, citations=None), document({"type": "content", "content": FIRST}, citations=None)]
    message = client.messages.create(**asked(*hidden))
    assert len(message.content) == 1
    assert message.content[0].citations is None
    told = {source["text"] for source in message.ewe["sources"]}
    assert {FIRST, SECOND} <= told, "they are in memory all the same"


@pytest.mark.parametrize("brought", [(), BROUGHT, (PLAIN_DOCUMENT, RESULT, IN_BLOCKS)])
def test_a_stream_adds_up_to_the_message(client: Any, brought: Any) -> None:
    whole = client.messages.create(**asked(*brought))
    with client.messages.stream(**asked(*brought)) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    told = [(block.text, block.citations or None) for block in final.content]
    assert told == [(block.text, block.citations or None) for block in whole.content]
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"


def test_the_raw_events_are_anthropics_in_their_order(url: str, client: Any) -> None:
    events = list(client.messages.create(**asked(*BROUGHT), stream=True))
    assert [(event.type, getattr(event, "index", None)) for event in events] == [
        ("message_start", None),
        *[(f"content_block_{kind}", 0) for kind in ("start", "delta", "stop")],
        *[(f"content_block_{kind}", 1) for kind in ("start", "delta", "delta", "stop")],
        ("message_delta", None),
        ("message_stop", None),
    ]
    deltas = [event.delta.type for event in events if event.type == "content_block_delta"]
    assert deltas == ["text_delta", "text_delta", "citations_delta"]
    raw = http.post(f"{url}/v1/messages", json=asked(stream=True), headers={"x-api-key": KEY}).text
    assert "[DONE]" not in raw


@pytest.mark.parametrize("stream", [False, True])
def test_why_an_answer_ended(client: Any, stream: bool) -> None:
    def ended(**more: Any) -> tuple[Any, ...]:
        if not stream:
            message = client.messages.create(**asked(**more))
            return message.stop_reason, message.stop_sequence, "".join(block.text for block in message.content)
        with client.messages.stream(**asked(**more)) as told:
            message = told.get_final_message()
        return message.stop_reason, message.stop_sequence, "".join(block.text for block in message.content)

    reason, stop, text = ended(stop_sequences=["Bengate", "in Gav"])
    assert (reason, stop) == ("stop_sequence", "in Gav")
    assert text.strip() == "Starard Trillow was born in 1925"
    assert ended(max_tokens=4)[:2] == ("max_tokens", None)


def test_a_conversation_goes_on_with_what_was_answered(client: Any) -> None:
    first = client.messages.create(**asked(*BROUGHT, system=[{"type": "text", "text": "Be brief."}]))
    request = asked(*BROUGHT, system="Be brief.", extra_body={"temperature": 0.5, "top_k": 3, "top_p": 0.9})
    request["messages"] += [first.to_param(), {"role": "user", "content": "Where did Nurim Nurner study?"}]
    second = client.messages.create(**request)
    assert second.ewe["stats"]["prompt_tokens"] > first.ewe["stats"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"extra_body": {"mcp_servers": [{"type": "url", "url": "x", "name": "y"}]}}, "MCP servers"),
        ({"thinking": {"type": "between_tools"}}, "thinking"),
        ({"extra_body": {"output_config": {"format": {"type": "grammar"}}}}, "output_config"),
        ({"extra_body": {"ewe": {"stream": "draft"}}}, "drafts"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}]}, "needs a text"),
        ({"messages": [{"role": "user", "content": [RESULT]}]}, "needs a text"),
        ({"messages": [{"role": "user", "content": "a"}] * 2048, "system": "b"}, "at most 2048"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "images"),
        ({"messages": [{"role": "user", "content": [document({"type": "url", "url": "x"})]}]}, "addresses"),
    ],
)
def test_what_is_not_there_is_refused_by_name(client: Any, more: Any, named: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=named) as caught:
        client.messages.create(**{**asked(), **more})
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert caught.value.body["type"] == "error"


EMPTY = {"type": "text", "text": ""}
HI = {"role": "user", "content": "Hi"}
NOT_EMPTY = "all messages must have non-empty content except for the optional final assistant message"
BLOCK_NOT_EMPTY = "text content blocks must be non-empty"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"messages": [{"role": "user", "content": ""}]}, f"messages.0: {NOT_EMPTY}"),
        ({"messages": [{"role": "user", "content": []}]}, f"messages.0: {NOT_EMPTY}"),
        ({"messages": [HI, {"role": "assistant", "content": ""}, HI]}, f"messages: {NOT_EMPTY}"),
        ({"messages": [{"role": "user", "content": [EMPTY]}]}, BLOCK_NOT_EMPTY),
        ({"messages": [{"role": "user", "content": [EMPTY, {"type": "text", "text": "Hi"}]}]}, BLOCK_NOT_EMPTY),
        ({"messages": [HI], "system": [EMPTY]}, BLOCK_NOT_EMPTY),
    ],
)
def test_what_is_empty_is_refused_in_anthropics_words(client: Any, more: Any, told: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**{**asked(), **more})
    error = caught.value.body["error"]
    assert error["type"] == "invalid_request_error"
    assert told in error["message"]


@pytest.mark.parametrize("content", ["", []])
def test_an_empty_beginning_of_the_answer_begins_nothing(client: Any, content: Any) -> None:
    plain = client.messages.create(model="builtin", max_tokens=5, messages=[HI])
    begun = client.messages.create(
        model="builtin", max_tokens=5, messages=[HI, {"role": "assistant", "content": content}]
    )
    assert begun.content == plain.content


def test_models_are_told_in_anthropics_form(url: str) -> None:
    models = anthropic.Anthropic(base_url=url, api_key=KEY, _strict_response_validation=True).models
    page = models.list(limit=5)
    assert [model.id for model in page] == ["builtin"]
    assert (page.first_id, page.last_id, page.has_more) == ("builtin", "builtin", False)
    model = models.retrieve("builtin")
    assert (model.id, model.type, model.display_name, model.lifecycle) == ("builtin", "model", "builtin", "active")
    assert model.created_at.year > 2024
    assert model.max_tokens == 300 < model.max_input_tokens
    with pytest.raises(anthropic.NotFoundError, match="no model 'another'"):
        models.retrieve("another")


def test_errors_are_anthropics(url: str, client: Any) -> None:
    with pytest.raises(anthropic.AuthenticationError) as caught:
        client_of(url, "another").messages.create(**asked())
    assert caught.value.body["error"]["type"] == "authentication_error"
    with pytest.raises(anthropic.NotFoundError, match="no model"):
        client.messages.create(**asked(model="another"))
    bearer = anthropic.Anthropic(base_url=url, auth_token=KEY, max_retries=0)
    assert bearer.messages.create(**asked(max_tokens=1)).stop_reason == "max_tokens"


def test_a_stream_that_fails_ends_with_the_reason(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(generation: Generation, own_deadline: bool) -> None:
        raise RefusedError(500, "NaN in the logits", code="engine_error", may_retry=False)

    monkeypatch.setattr("ewe.server.answering.streaming.check_finished", fail)
    with pytest.raises(anthropic.APIStatusError, match="NaN in the logits"):
        list(client.messages.create(**asked(), stream=True))


def test_a_check_that_fails_costs_the_citations_alone(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ewe.errors import JudgeError
    from ewe.server.engine_client.text_verifiers import OwnTextVerifiers

    def fail(self: OwnTextVerifiers, documents: Any, in_parts: Any) -> Any:
        raise JudgeError("the judge is out")

    monkeypatch.setattr(OwnTextVerifiers, "against", fail)
    message = client.messages.create(**asked(*BROUGHT))
    assert cited(message) == {}
    assert SECOND in message.content[0].text


@pytest.mark.parametrize("stream", [False, True])
def test_all_sentences_of_an_answer_are_looked_up_by_one_verifier(
    url: str, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    from ewe.server.engine_client.text_verifiers import OwnTextVerifiers, TimedVerifier

    made: list[TimedVerifier] = []
    closed: list[TimedVerifier] = []
    against, close = OwnTextVerifiers.against, TimedVerifier.close
    monkeypatch.setattr(OwnTextVerifiers, "against", lambda *given: made.append(against(*given)) or made[-1])
    monkeypatch.setattr(TimedVerifier, "close", lambda self: (closed.append(self), close(self))[1])
    body = {**asked(*BROUGHT, PLAIN_DOCUMENT), "stream": stream}
    answer = http.post(f"{url}/v1/messages", json=body, headers={"x-api-key": KEY})
    assert answer.text.count("cited_text") > 1
    assert len(made) == 1
    wait_for(lambda: closed == made, "it is closed")


def test_more_parts_than_can_be_looked_up_are_refused(client: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="1001 blocks that may be cited; this server takes 1000"):
        client.messages.create(**asked(search_result(*["It is so."] * 1001)))


@pytest.mark.parametrize("stream", [False, True])
def test_the_router_passes_it_on(url: str, stream: bool) -> None:
    with routing([url], 100_000) as (router, _):
        client = client_of(router)
        if stream:
            with client.messages.stream(**asked(*BROUGHT)) as told:
                message = told.get_final_message()
        else:
            message = client.messages.create(**asked(*BROUGHT))
        assert list(cited(message)) == [SECOND]
        with pytest.raises(anthropic.AuthenticationError):
            client_of(router, "another").messages.create(**asked())
        with pytest.raises(anthropic.RequestTooLargeError) as caught:
            client.messages.create(**asked(search_result("x" * 100_000)))
        assert caught.value.body["error"]["type"] == "request_too_large"
