"""/v1/responses as the openai package meets it: lax, with strict validation, streaming, and through `.stream()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from server_rig import PROMPT, openai_client, serving, wait_until_idle

from ewe import LLM, SamplingParams
from ewe.server.app import create_app
from ewe.server.http.error_responses import RefusedError
from ewe.types import Generation

openai = pytest.importorskip("openai", reason="the openai package is not installed")

# Its answer has two sentences and soon ends.
QUESTION = "Compare the births of Starard Trillow and Nuruna Flurton."
TOKENS = 400
BRIEF = 12
OPENING = ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
CLOSING = ["response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"]


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM("builtin") as running:
        yield running


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address


@pytest.fixture(scope="module")
def expected(llm: LLM) -> Generation:
    """What the engine itself says to the prompt."""
    return llm.chat([{"role": "user", "content": QUESTION}], SamplingParams(max_tokens=TOKENS))[0]


@pytest.fixture(scope="module")
def brief(llm: LLM) -> Generation:
    """The same, cut."""
    return llm.chat([{"role": "user", "content": QUESTION}], SamplingParams(max_tokens=BRIEF))[0]


@pytest.fixture(params=[False, True], ids=["lax", "strict"])
def responses(request: pytest.FixtureRequest, url: str) -> Any:
    """The client's `responses`."""
    return openai_client(url, request.param).responses


def ask(responses: Any, **more: Any) -> Any:
    return responses.create(model="builtin", **{"input": QUESTION, "max_output_tokens": TOKENS, **more})


def citations(expected: Generation) -> set[tuple[int, int, str]]:
    return {
        (sentence.start, sentence.end, f"ewe:{source}")
        for sentence in expected.sentences
        for claim in sentence.claims
        if claim.verdict == "supported"
        for source in claim.evidence_ids
    }


def test_an_answer_comes_with_its_citations(responses: Any, expected: Generation) -> None:
    response = ask(responses, metadata={"case": "7"}, instructions=None)
    assert response.status == "completed"
    assert response.output_text == expected.text
    assert response.metadata == {"case": "7"}
    [message] = response.output
    cited = {(note.start_index, note.end_index, note.url) for note in message.content[0].annotations}
    assert cited == citations(expected) != set()
    stats = expected.stats
    assert response.usage.input_tokens == stats.prompt_tokens + stats.unit_tokens
    assert response.usage.output_tokens == stats.tokens_kept + stats.tokens_discarded
    told = response.ewe if isinstance(response.ewe, dict) else response.ewe.model_dump()
    assert [sentence["verdict"] for sentence in told["sentences"]] == [s.verdict for s in expected.sentences]


def test_a_stream_is_openais_events_in_their_order(responses: Any, expected: Generation) -> None:
    events = list(ask(responses, stream=True))
    kinds = [event.type for event in events]
    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    notes = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    middle = ["response.output_text.delta"] * len(texts) + ["response.output_text.annotation.added"] * len(notes)
    assert kinds == [*OPENING, *middle, *CLOSING]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(texts) == expected.text == events[-1].response.output_text
    assert len(texts) == len(expected.sentences)
    assert len(notes) == len(events[-1].response.output[0].content[0].annotations) == len(citations(expected))
    assert events[0].response.status == "in_progress"


def test_the_streaming_helper_reads_it(responses: Any, expected: Generation) -> None:
    with responses.stream(model="builtin", input=QUESTION, max_output_tokens=TOKENS) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == expected.text


def test_an_answer_that_is_cut_says_so(responses: Any) -> None:
    response = ask(responses, max_output_tokens=5)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    events = list(ask(responses, max_output_tokens=5, stream=True))
    assert events[-1].type == "response.incomplete"


def test_log_probabilities_are_those_of_the_text(responses: Any, brief: Generation) -> None:
    response = ask(responses, top_logprobs=2, max_output_tokens=BRIEF)
    tokens = response.output[0].content[0].logprobs
    assert "".join(token.token for token in tokens) == brief.text
    assert [token.logprob for token in tokens] == pytest.approx(brief.logprobs, abs=1e-3)
    assert {len(token.top_logprobs) for token in tokens} == {2}
    logged = {"include": ["message.output_text.logprobs"], "max_output_tokens": BRIEF}
    [last] = list(ask(responses, **logged, stream=True))[-1:]
    assert len(last.response.output[0].content[0].logprobs) == len(tokens)


def test_a_conversation_goes_on_with_what_was_answered(responses: Any) -> None:
    first = ask(responses, max_output_tokens=5)
    said = [{"role": "user", "content": QUESTION}, *[item.model_dump() for item in first.output]]
    more = [*said, {"role": "user", "content": "Go on."}]
    second = responses.create(model="builtin", input=more, max_output_tokens=5)
    assert second.ewe["stats"]["prompt_tokens"] > first.ewe["stats"]["prompt_tokens"]


def test_documents_fill_the_memory(responses: Any) -> None:
    text = "Nurim Nurner kept bees in Tenford."
    response = ask(responses, max_output_tokens=5, extra_body={"documents": [{"id": "bees", "text": text}]})
    told = response.ewe if isinstance(response.ewe, dict) else response.ewe.model_dump()
    assert text in [source["text"] for source in told["sources"] if source["id"] == "bees"]


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input.0.content"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format"),
        ({"extra_body": {"response_format": {"type": "json_object"}}}, "response_format"),
        ({"extra_body": {"max_tokens": 5}}, "max_tokens"),
    ],
)
def test_what_is_not_there_is_refused_by_name(url: str, asked: dict[str, Any], param: str) -> None:
    client = openai_client(url)
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client.responses, **asked)
    assert caught.value.param == param
    assert param in caught.value.message
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.responses.create(model="another", input=PROMPT)


def test_truncation_is_taken_where_nothing_is_left_out(url: str) -> None:
    client = openai_client(url)
    told = client.responses.create(model="builtin", input=PROMPT, max_output_tokens=3, truncation="auto")
    assert (told.truncation, told.output_text != "") == ("auto", True)
    with pytest.raises(openai.BadRequestError, match="truncation: nothing is left out") as caught:
        client.responses.create(model="builtin", input="The sea. " * 2000, truncation="auto")
    assert (caught.value.param, caught.value.code) == ("truncation", "context_length_exceeded")


def test_events_of_the_engine_come_if_they_are_asked_for(url: str) -> None:
    client = openai_client(url)
    asked: Any = {"input": PROMPT, "max_output_tokens": 30, "extra_body": {"ewe": {"events": True}}}
    events = list(ask(client.responses, stream=True, **asked))
    happened = [event.event for event in events if event.type == "response.ewe.event"]
    assert {"draft", "retrieval", "verification", "refresh", "sentence"} <= set(happened)
    assert events[-1].type == "response.incomplete"
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_a_stream_that_fails_ends_with_the_reason(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(generation: Generation, own_deadline: bool) -> None:
        raise RefusedError(500, "NaN in the logits", code="engine_error", may_retry=False)

    monkeypatch.setattr("ewe.server.answering.streaming.check_finished", fail)
    client = openai_client(url)
    *_, last = ask(client.responses, stream=True, max_output_tokens=5)
    assert last.type == "response.failed"
    assert (last.response.status, last.response.error.message) == ("failed", "NaN in the logits")
    with pytest.raises(openai.InternalServerError, match="NaN in the logits"):
        ask(client.responses, max_output_tokens=5)


def test_who_goes_leaves_nothing_behind(url: str, llm: LLM) -> None:
    client = openai_client(url)
    with ask(client.responses, stream=True, extra_body={"ignore_eos": True}) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                break
    wait_until_idle(llm)
