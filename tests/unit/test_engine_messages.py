"""Between the server's process and the engine's: whatever is sent comes out as it was, and an end is noticed."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ewe import errors
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.request import Request, TokenizedRequest
from ewe.server.http.error_responses import RefusedError, refusal_of
from ewe.server.own_process import engine_messages as wire
from ewe.server.own_process.message_pipe import MessagePipe, packed
from ewe.text.tool_calls.formats import FORMATS
from ewe.text.tool_calls.tools import Tool, ToolRequest
from ewe.text.tool_calls.use import ToolUse
from ewe.types import (
    Claim,
    Evidence,
    Generation,
    GenerationStats,
    MemoryOptions,
    Passage,
    Sentence,
    ToolCall,
    TraceEvent,
    Verdict,
    VerificationRequest,
    VerificationResult,
)
from ewe.types.sampling_params import SamplingParams

# With halves of surrogate pairs, which a model may write.
texts = st.text(st.characters(exclude_categories=()), max_size=8)
numbers = st.floats(allow_nan=False)
counts = st.integers(0, 1 << 40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)
passages = st.builds(Passage, texts, texts, texts, veracity=st.floats(0, 1), metadata=objects)
claims = st.builds(
    Claim, texts, counts, counts, st.sampled_from(Verdict), numbers, st.lists(texts, max_size=2).map(tuple)
)
many_claims = st.lists(claims, max_size=2).map(tuple)
sentences = st.builds(
    Sentence, texts, counts, counts, st.sampled_from(Verdict), numbers, many_claims,
    attention=st.dictionaries(texts, numbers, max_size=2), removed=st.lists(texts, max_size=2).map(tuple),
)  # fmt: skip
scores = st.dictionaries(counts, numbers, max_size=3)
generations = st.builds(
    Generation,
    prompt=texts,
    text=texts,
    token_ids=st.lists(counts, max_size=4).map(tuple),
    finish_reason=st.sampled_from(("stop", "length", "abort", "timeout", "error")),
    sentences=st.lists(sentences, max_size=2).map(tuple),
    sources=st.dictionaries(texts, passages, max_size=2),
    stats=st.builds(GenerationStats, prompt_tokens=counts, decode_s=numbers),
    trace=st.lists(st.builds(TraceEvent, texts, numbers, counts, objects), max_size=2).map(tuple),
    logprobs=st.lists(numbers, max_size=3).map(tuple),
    top_logprobs=st.lists(scores, max_size=2).map(tuple),
    index=counts,
    error=texts,
    tool_calls=st.lists(st.builds(ToolCall, texts, texts, texts), max_size=1).map(tuple),
)
tool_uses = st.builds(
    ToolUse,
    st.builds(ToolRequest, st.lists(st.builds(Tool, texts, texts, objects), max_size=2).map(tuple), only=texts),
    st.sampled_from(list(FORMATS.values())),
    st.booleans(),
    st.dictionaries(texts, counts, max_size=2),
    st.none() | objects,
)
requests = st.builds(
    Request,
    texts | st.lists(counts, max_size=4) | st.builds(PlacedPrompt, texts, texts, texts),
    st.builds(
        SamplingParams, max_tokens=st.integers(1, 99), seed=st.integers(0, 1 << 63), stop=st.just(("a", "b")),
        logit_bias=scores.map(lambda found: dict.fromkeys(found, 1.0)), json_schema=st.none() | objects,
        deadline_s=st.none() | st.floats(0.1, 9),
    ),
    documents=st.none() | st.lists(texts | passages, max_size=2),
    memory=st.none() | st.builds(MemoryOptions, texts, texts),
    tools=st.none() | tool_uses,
    kept=st.dictionaries(counts, texts, max_size=2),
    label_token_ids=st.lists(counts, max_size=2).map(tuple),
    closed_world=st.none() | st.booleans(),
)  # fmt: skip
tokenized = st.builds(
    TokenizedRequest, texts, requests, texts, texts, st.lists(counts, max_size=2).map(tuple),
    st.lists(counts, max_size=4).map(tuple), counts, counts, counts, st.builds(MemoryOptions, texts),
)  # fmt: skip


def over_the_wire(plain: Any) -> Any:
    return json.loads(packed(plain))


def parts(request: TokenizedRequest) -> dict[str, Any]:
    """What a request holds; requests themselves are never equal."""
    return {name: getattr(request, name) for name in TokenizedRequest.__dataclass_fields__}


@examples(25)
@given(st.builds(StreamEvent, texts, objects, st.none() | generations, counts), texts)
def test_an_event_comes_out_as_it_was(event: StreamEvent, request_id: str) -> None:
    assert wire.read_event(over_the_wire(wire.plain_event(request_id, event))) == (request_id, event)


@examples(25)
@given(tokenized)
def test_a_request_comes_out_as_it_was_but_for_its_listener(request: TokenizedRequest) -> None:
    heard = replace(request, original=replace(request.original, listener=print))
    found = wire.read_request(over_the_wire(wire.plain_request(heard)))
    assert parts(found) == parts(request)


@given(st.lists(st.builds(VerificationRequest, texts, texts, texts, texts, st.none() | st.booleans()), max_size=2))
def test_checks_come_out_as_they_were(checks: list[VerificationRequest]) -> None:
    assert wire.CHECKS.read(over_the_wire(wire.CHECKS.plain(checks))) == checks


evidence = st.builds(Evidence, passages, st.sampled_from(Verdict), numbers, texts, texts)


@examples(25)
@given(st.lists(st.builds(VerificationResult, many_claims, st.lists(evidence, max_size=2).map(tuple)), max_size=2))
def test_results_come_out_as_they_were(results: list[VerificationResult]) -> None:
    assert wire.CHECKED.read(over_the_wire(wire.CHECKED.plain(results))) == results


RAISED = [
    errors.ConfigError("one", "two"),
    errors.InvalidRequestError("prompt: too short"),
    errors.PromptTooLongError("too long"),
    errors.SchemaError("no"),
    errors.DeviceMemoryError("lower it"),
    errors.JudgeError("late"),
    RefusedError(404, "none here", param="model", code="no_encoder", may_retry=False),
    FileNotFoundError(2, "No such file or directory", "weights"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_comes_out_as_it_was(error: Exception) -> None:
    found = wire.read_error(over_the_wire(wire.plain_error(error)))
    assert (type(found), str(found), found.__dict__) == (type(error), str(error), error.__dict__)


class OwnJudgeError(errors.JudgeError):
    """Of a component that the other process may not have."""


def test_an_error_that_nobody_knows_comes_out_as_the_nearest() -> None:
    own = wire.read_error(wire.plain_error(OwnJudgeError("late")))
    assert (type(own), str(own)) == (errors.JudgeError, "late")
    unforeseen = wire.read_error(wire.plain_error(ZeroDivisionError("division by zero")))
    assert not isinstance(unforeseen, errors.EWEError), "the engine lives, and a router must not take it out"
    assert str(unforeseen) == "the engine's process failed: ZeroDivisionError: division by zero"
    assert refusal_of(unforeseen).code == "internal_error"


@pytest.fixture
def ends() -> Iterator[tuple[MessagePipe, MessagePipe, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield MessagePipe(one), MessagePipe(other), one


def test_messages_of_several_threads_arrive_whole(ends: Any) -> None:
    one, other, _ = ends
    sent = [["x" * 50_000, number] for number in range(20)]
    threads = [threading.Thread(target=one.send, args=(message,)) for message in sent]
    for thread in threads:
        thread.start()
    found = sorted(other.receive() for _ in sent)
    for thread in threads:
        thread.join()
    assert found == sorted(sent)


def test_figures_that_are_none_and_objects_of_components_get_through(ends: Any) -> None:
    one, other, _ = ends
    one.send([math.inf, -math.inf, math.nan, Verdict.REFUTED, {"kept": (1, 2)}, {3}, object])
    found = other.receive()
    assert found[:2] == [math.inf, -math.inf]
    assert math.isnan(found[2])
    assert found[3:] == ["refuted", {"kept": [1, 2]}, [3], str(object)]
    one.send({(1, 2): "a key"})
    assert list(other.receive().values()) == ["a key"]


@pytest.mark.parametrize("cut", [0, 2, 4, 6])
def test_the_end_of_the_other_side_is_the_end_of_messages(ends: Any, cut: int) -> None:
    one, other, raw = ends
    one.send("whole")
    raw.sendall((b"\0\0\0\x06" + b'"half"')[:cut])
    one.hang_up()
    assert [other.receive(), other.receive(), other.receive()] == ["whole", None, None]
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        [other.send("x" * 100_000) for _ in range(100)]
    one.hang_up()
