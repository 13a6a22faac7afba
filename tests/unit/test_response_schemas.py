"""What /v1/responses takes and refuses, and whether its events are OpenAI's, in order and with every field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")
openai_responses = pytest.importorskip("openai.types.responses", reason="the openai package is not installed")

from pydantic import TypeAdapter, ValidationError  # noqa: E402

from ewe.server.openai.responses_events import ResponseEvents  # noqa: E402
from ewe.server.schemas.response_answers import (  # noqa: E402
    OutputCall,
    OutputMessage,
    OutputReasoning,
    OutputText,
    OutputTokensDetails,
    ReasoningText,
    ResponseBody,
    ResponseUsage,
    UrlCitation,
)
from ewe.server.schemas.response_schemas import ResponsesRequest  # noqa: E402

EVENT = TypeAdapter(openai_responses.ResponseStreamEvent)


def body(status: str, text: str | None = None, citations: int = 0) -> ResponseBody:
    """A response under way, or with this text and so many citations."""
    cited = [UrlCitation(url=f"ewe:p{n}", title=f"Page {n}", start_index=0, end_index=n) for n in range(citations)]
    parts = [] if text is None else [OutputText(text=text, annotations=cited, logprobs=[])]
    usage = ResponseUsage(
        input_tokens=3,
        output_tokens=5,
        output_tokens_details=OutputTokensDetails(rejected_prediction_tokens=2),
        total_tokens=8,
    )
    return ResponseBody(
        id="resp_1",
        created_at=1,
        status=status,
        instructions=None,
        max_output_tokens=None,
        metadata={},
        model="tiny",
        output=[OutputMessage(id="msg_1", status="completed", content=parts)] if parts else [],
        parallel_tool_calls=True,
        temperature=0.0,
        tool_choice="auto",
        tools=[],
        top_p=1.0,
        reasoning={"effort": None, "summary": None},
        store=False,
        usage=usage if parts else None,
    )


def parsed(records: str) -> list[dict[str, Any]]:
    """The events of a stream; every record names its event as its data does."""
    events = []
    for record in records.split("\n\n")[:-1]:
        name, data = record.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def stream(texts: list[str], citations: int, thought: Sequence[str] = (), calls: int = 0) -> list[dict[str, Any]]:
    events = ResponseEvents(body("in_progress"), "msg_1", "rs_1")
    records = events.begin() + "".join(events.reasoning(text) for text in thought)
    records += "".join(events.text(text) for text in texts)
    answer = body("completed", "".join(texts), citations)
    reasoned = [ReasoningText(text="".join(thought))]
    output: list[Any] = [OutputReasoning(id="rs_1", status="completed", content=reasoned)] if thought else []
    output += answer.output
    output += [
        OutputCall(id=f"fc_{n}", status="completed", call_id=f"c{n}", name="f", arguments="{}") for n in range(calls)
    ]
    return parsed(records + events.finish(answer.model_copy(update={"output": output})))


@given(st.lists(st.text(min_size=1, max_size=8), max_size=4), st.integers(0, 3))
def test_every_event_is_one_of_openais_and_the_text_adds_up(texts: list[str], citations: int) -> None:
    events = stream(texts, citations)
    read = [EVENT.validate_python(event, strict=False) for event in events]
    assert [event.sequence_number for event in read] == list(range(len(read)))
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *["output_text.delta"] * len(texts),
        *["output_text.annotation.added"] * citations,
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    deltas = "".join(event.delta for event in read if event.type == "response.output_text.delta")
    assert deltas == read[-1].response.output_text
    places = [event.annotation_index for event in read if event.type == "response.output_text.annotation.added"]
    assert places == list(range(citations))


def test_what_is_reasoned_and_calls_are_items_of_their_own() -> None:
    events = stream(["A."], 0, ["Hm", "."], 2)
    kinds = [(event["type"].removeprefix("response."), event.get("output_index")) for event in events]
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert kinds == [
        *[("created", None), ("in_progress", None), ("output_item.added", 0), ("content_part.added", 0)],
        *[("reasoning_text.delta", 0)] * 2,
        *[("reasoning_text.done", 0), ("content_part.done", 0), ("output_item.done", 0)],
        *[("output_item.added", 1), ("content_part.added", 1), ("output_text.delta", 1)],
        *[("output_text.done", 1), ("content_part.done", 1), ("output_item.done", 1)],
        *[(kind, 2) for kind in call],
        *[(kind, 3) for kind in call],
        ("completed", None),
    ]
    [done] = [event for event in events if event["type"] == "response.reasoning_text.done"]
    assert done["text"] == "Hm."
    for event in events:
        EVENT.validate_python(event)


def test_no_field_of_an_event_is_missing_that_openai_requires() -> None:
    for event in stream(["A.", " B."], 1, ["Hm."], 1):
        model = type(EVENT.validate_python(event))
        missing = {name for name, field in model.model_fields.items() if field.is_required()} - set(event)
        assert not missing, event["type"]


def test_a_response_that_broke_off_says_so() -> None:
    events = ResponseEvents(body("in_progress"), "msg_1", "rs_1")
    events.begin()
    [event] = parsed(events.fail(body("failed")))
    assert event["type"] == "response.failed"
    assert event["sequence_number"] == 2
    EVENT.validate_python(event)


def test_an_answer_can_be_sent_back_as_it_came() -> None:
    answer = body("completed", "She won it.", 2).output[0].model_dump(mode="json")
    request = ResponsesRequest.model_validate(
        {
            "instructions": "Be brief.",
            "input": [{"role": "user", "content": "Who won it?"}, answer, {"role": "developer", "content": "Go on."}],
        }
    )
    assert request.messages() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who won it?"},
        {"role": "assistant", "content": "She won it."},
        {"role": "system", "content": "Go on."},
    ]


def test_calls_and_their_results_are_messages() -> None:
    items = [
        {"role": "user", "content": "How is Lyon?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "sunny"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "rain"}]},
    ]
    asked, said, *results = ResponsesRequest.model_validate({"input": items}).messages()
    assert (asked["content"], said["content"]) == ("How is Lyon?", "I look.")
    assert [call["id"] for call in said["tool_calls"]] == ["a", "b"]
    assert [(result["tool_call_id"], result["content"]) for result in results] == [("a", "sunny"), ("b", "rain")]


def test_a_text_is_a_question_and_parts_are_joined() -> None:
    assert ResponsesRequest(input="Who?").messages() == [{"role": "user", "content": "Who?"}]
    parts = [{"type": "input_text", "text": "A"}, {"type": "input_text", "text": "B"}]
    request = ResponsesRequest.model_validate({"input": [{"role": "user", "content": parts}]})
    assert request.messages() == [{"role": "user", "content": "A\nB"}]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [({}, None), ({"top_logprobs": 3}, 3), ({"include": ["message.output_text.logprobs"]}, 0), ({"include": []}, None)],
)
def test_logprobs_are_told_if_they_are_asked_for(asked: dict[str, Any], wanted: int | None) -> None:
    assert ResponsesRequest(input="Who?", **asked).wants_logprobs == wanted


@pytest.mark.parametrize(
    "asked",
    [
        {"tools": [{"type": "web_search"}]},
        {"tool_choice": {"type": "web_search"}},
        {"previous_response_id": 7},
        {"conversation": "conv_1"},
        {"background": True},
        {"text": {"format": {"type": "grammar"}}},
        {"include": ["file_search_call.results"]},
        {"prompt": {"id": "pmpt_1"}},
        {"max_tokens": 4},
        {"n": 2},
        {"metadata": {"key": "v" * 513}},
        {"metadata": {"key": "half \ud83d"}},
        {"metadata": {str(number): "" for number in range(17)}},
        {"max_output_tokens": 0},
    ],
)
def test_what_the_engine_does_not_have_is_refused_by_name(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        ResponsesRequest(input="Who?", **asked)
    assert {error["loc"][0] for error in caught.value.errors()} == set(asked)


@pytest.mark.parametrize(
    ("asked", "told"), [({"conversation": {"id": "conv_1"}}, "previous_response_id"), ({"background": True}, "stream")]
)
def test_a_refusal_says_what_to_use_instead(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=f"not supported: use {told}"):
        ResponsesRequest(input="Who?", **asked)
    assert ResponsesRequest(input="Who?", conversation=None, background=False).messages()


def test_what_was_said_in_refusing_is_a_text() -> None:
    said: Any = [{"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}]
    assert ResponsesRequest(input=said).messages() == [{"role": "assistant", "content": "I will not."}]


@pytest.mark.parametrize(
    "given",
    [
        [],
        [{"role": "user", "content": []}],
        [{"role": "tool", "content": "x"}],
        [{"type": "function_call_output", "output": "x"}],
        [{"type": "item_reference", "id": "msg_1"}],
        [{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/x.png"}]}],
        [{"role": "user", "content": "half \ud83d"}],
        7,
        None,
    ],
)
def test_inputs_that_are_no_texts_are_refused(given: Any) -> None:
    with pytest.raises(ValidationError, match="input"):
        ResponsesRequest(input=given)
