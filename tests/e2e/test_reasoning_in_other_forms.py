"""What models reason in messages, Cohere's chats and responses: whole, streamed, asked for, sent back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from late_import import late_import
from script_rig import scripted_llm
from server_rig import http, openai_client, serving, wait_until_idle

from ewe.server.app import create_app

anthropic = late_import("anthropic", reason="the anthropic client is not installed")
cohere = pytest.importorskip("cohere", reason="the cohere client is not installed")
openai = pytest.importorskip("openai", reason="the openai client is not installed")

ASKED: Any = [{"role": "user", "content": "How is Lyon?"}]
THOUGHT, ANSWER = "Lyon is in Peru. It is a city.", "Lyon is in France. It is sunny."
CLOSED = "<think>\n\n</think>"
MORE = {"role": "user", "content": "And Oslo?"}


def answer(prompt: str, num_units: int) -> str:
    """Written for the prompts of tests that may reason; `CLOSED` is of the prompt where they may not."""
    return f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"


def closed_answer(prompt: str, num_units: int) -> str:
    return f"{CLOSED}\n\n{ANSWER}"


@pytest.fixture(scope="module", params=["asked for", "by default"])
def thinking(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    """The address of a server whose model reasons, and whether it has to be asked to."""
    is_default = request.param == "by default"
    with scripted_llm("may-think", answer, {"model": {"thinking": "on" if is_default else "auto"}}) as llm:
        with serving(create_app(llm)) as url:
            yield url, not is_default
        wait_until_idle(llm)


@pytest.fixture(scope="module")
def silent_url() -> Iterator[str]:
    """A server whose model would reason, and whose script knows only prompts that forbid it."""
    with scripted_llm("may-think", closed_answer, {"model": {"thinking": "on"}}) as llm:
        with serving(create_app(llm)) as url:
            yield url
        wait_until_idle(llm)


def claude(url: str) -> Any:
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages


def command(url: str) -> Any:
    return cohere.ClientV2(api_key="none", base_url=url)


# --- Anthropic


@pytest.mark.parametrize("wanted", [{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}])
def test_messages_have_thinking_blocks(thinking: tuple[str, bool], wanted: Any) -> None:
    url, is_asked = thinking
    asked = {"model": "scripted", "max_tokens": 200, "messages": ASKED}
    asked |= {"thinking": wanted} if is_asked else {}
    whole = claude(url).create(**asked)
    with claude(url).stream(**asked) as stream:
        events = list(stream)
        told = stream.get_final_message()
    for message in (whole, told):
        thought, text = message.content
        assert (thought.type, thought.thinking, text.text) == ("thinking", THOUGHT, ANSWER)
        assert thought.signature
    assert whole.content[0] == told.content[0]
    assert whole.usage.output_tokens == told.usage.output_tokens > 20
    deltas = [event.delta.type for event in events if event.type == "content_block_delta"]
    first_text = deltas.index("text_delta")
    assert deltas[first_text - 1] == "signature_delta"
    assert set(deltas[: first_text - 1]) == {"thinking_delta"}
    assert claude(url).create(**{**asked, "messages": [*ASKED, whole.to_param(), MORE]}).content


def test_a_message_that_ends_while_it_is_reasoned_has_no_text(thinking: tuple[str, bool]) -> None:
    message = claude(thinking[0]).create(
        model="scripted", max_tokens=8, messages=ASKED, thinking={"type": "enabled", "budget_tokens": 1024}
    )
    assert ([block.type for block in message.content], message.stop_reason) == (["thinking"], "max_tokens")


def test_thinking_comes_beside_citations(thinking: tuple[str, bool]) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Oslo is a city."}
    brought = {"type": "document", "source": source, "citations": {"enabled": True}}
    asked = {"messages": [{"role": "user", "content": [brought, {"type": "text", "text": "How is Lyon?"}]}]}
    wanted = {"type": "enabled", "budget_tokens": 1024}
    with claude(thinking[0]).stream(model="scripted", max_tokens=200, thinking=wanted, **asked) as stream:
        told = stream.get_final_message()
    whole = claude(thinking[0]).create(model="scripted", max_tokens=200, thinking=wanted, **asked)
    assert [block.type for block in told.content] == [block.type for block in whole.content] == ["thinking", "text"]


def test_messages_without_thinking_are_answered_at_once(silent_url: str) -> None:
    message = claude(silent_url).create(model="scripted", max_tokens=200, messages=ASKED, thinking={"type": "disabled"})
    assert [(block.type, block.text) for block in message.content] == [("text", ANSWER)]


# --- Cohere


def test_chats_have_thinking(thinking: tuple[str, bool]) -> None:
    url, is_asked = thinking
    asked = {"model": "scripted", "messages": ASKED}
    asked |= {"thinking": {"type": "enabled", "token_budget": 100}} if is_asked else {}
    whole = command(url).chat(**asked)
    thought, text = whole.message.content
    assert (thought.type, thought.thinking, text.text) == ("thinking", THOUGHT, ANSWER)
    events = list(command(url).chat_stream(**asked))
    kinds = [
        (event.type, event.index) for event in events if event.type.startswith("content") and "delta" not in event.type
    ]
    assert kinds == [(f"content-{kind}", place) for place in (0, 1) for kind in ("start", "end")]
    deltas = [event.delta.message.content for event in events if event.type == "content-delta"]
    assert "".join(delta.thinking or "" for delta in deltas) == THOUGHT
    assert "".join(delta.text or "" for delta in deltas) == ANSWER
    assert command(url).chat(**{**asked, "messages": [*ASKED, whole.message, MORE]}).message.content


def test_chats_without_thinking_are_answered_at_once(silent_url: str) -> None:
    told = command(silent_url).chat(model="scripted", messages=ASKED, thinking={"type": "disabled"})
    assert [(part.type, part.text) for part in told.message.content] == [("text", ANSWER)]


# --- OpenAI


@pytest.mark.parametrize("strict", [False, True])
def test_responses_have_reasoning_items(thinking: tuple[str, bool], strict: bool) -> None:
    url, is_asked = thinking
    responses = openai_client(url, strict).responses
    asked: Any = {"model": "scripted", "input": ASKED}
    asked |= {"reasoning": {"effort": "low"}} if is_asked else {}
    whole = responses.create(**asked)
    [thought, _] = whole.output
    assert (thought.type, thought.content[0].text, whole.output_text) == ("reasoning", THOUGHT, ANSWER)
    assert whole.usage.output_tokens_details.reasoning_tokens > 10
    assert whole.reasoning.effort == ("low" if is_asked else None)
    events = list(responses.create(**asked, stream=True))
    deltas = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
    assert "".join(deltas) == THOUGHT
    final = events[-1].response
    told = [event.item.model_dump() for event in events if event.type == "response.output_item.done"]
    assert told == [item.model_dump() for item in final.output]
    assert [item.type for item in final.output] == ["reasoning", "message"]
    history = [*ASKED, *[item.model_dump(exclude_none=True) for item in whole.output], MORE]
    assert responses.create(**{**asked, "input": history}).output
    assert responses.create(**{**asked, "input": [MORE]}, previous_response_id=whole.id).output


def test_a_response_that_ends_while_it_is_reasoned_says_that_this_is_not_whole(thinking: tuple[str, bool]) -> None:
    responses = openai_client(thinking[0]).responses
    asked: Any = {"model": "scripted", "input": ASKED, "reasoning": {"effort": "low"}, "max_output_tokens": 8}
    whole = responses.create(**asked)
    [told] = [event.item for event in responses.create(**asked, stream=True) if event.type.endswith("item.done")]
    assert [(item.type, item.status) for item in (*whole.output, told)] == [("reasoning", "incomplete")] * 2


@pytest.mark.parametrize("effort", ["none", "minimal"])
def test_without_effort_they_are_answered_at_once(silent_url: str, effort: str) -> None:
    client = openai_client(silent_url)
    response = client.responses.create(model="scripted", input=ASKED, reasoning={"effort": effort})
    assert [item.type for item in response.output] == ["message"]
    chat = client.chat.completions.create(model="scripted", messages=ASKED, reasoning_effort=effort)
    message = chat.choices[0].message
    assert (message.content, message.reasoning_content) == (ANSWER, None)


def test_chats_with_effort_reason(thinking: tuple[str, bool]) -> None:
    told = openai_client(thinking[0]).chat.completions.create(model="scripted", messages=ASKED, reasoning_effort="high")
    assert told.choices[0].message.reasoning_content == THOUGHT
    body = {"messages": ASKED, "reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": False}}
    assert http.post(f"{thinking[0]}/v1/chat/completions", json=body).json()["usage"]["prompt_tokens"] > (
        told.usage.prompt_tokens  # the template's own word counts more
    )


def test_an_effort_that_is_none_is_refused(silent_url: str) -> None:
    with pytest.raises(openai.BadRequestError, match="effort"):
        openai_client(silent_url).responses.create(model="scripted", input=ASKED, reasoning={"effort": "some"})
