"""Answers that the caller begins and the model goes on with: Python, policies, the server's forms, batches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from late_import import late_import
from script_rig import ASSISTANT, scripted_llm
from server_rig import http, openai_client, serving, wait_until_idle
from typer.testing import CliRunner
from unit.engine_parts import Answers

from ewe import LLM, SamplingParams
from ewe.async_llm import AsyncLLM
from ewe.config.memory_mark import PlacedPrompt
from ewe.errors import InvalidRequestError
from ewe.server.app import create_app
from ewe.types import Verdict

anthropic = late_import("anthropic", reason="the anthropic client is not installed")

WHOLE = "Lyon is in France. It is sunny. It rains."
BEGUN, REST = "Lyon is in France. It is", " sunny. It rains."
PARAMS = SamplingParams(max_tokens=100)
LOOP = {"feedback": {"verify_every": 1, "retrieve_every": 1, "max_attempts": 3}}
QUESTION = {"role": "user", "content": "How is Lyon?"}
WITH = {"continue_final_message": True, "add_generation_prompt": False}


def begun(text: str = BEGUN) -> Any:
    return [QUESTION, {"role": "assistant", "content": text}]


def whole(prompt: str, num_units: int) -> str:
    return WHOLE


def test_the_answer_is_what_follows() -> None:
    with scripted_llm("none", whole) as llm:
        [answer] = llm.chat(begun(), PARAMS, continue_final_message=True)
        again = asyncio.run(AsyncLLM.chat(SimpleNamespace(llm=llm, _run=_run(llm)), begun(), PARAMS,
                                          continue_final_message=True))  # fmt: skip
        placed = llm.chat_prompt(begun(), continue_final_message=True)
    assert answer.text == again[0].text == REST
    assert [sentence.text for sentence in answer.sentences] == ["sunny.", "It rains."]
    assert answer.prompt.endswith(f"{ASSISTANT}{BEGUN}")
    assert isinstance(placed, PlacedPrompt)
    assert placed.after.endswith(BEGUN)
    assert placed.text.endswith(f"How is Lyon?{ASSISTANT}{BEGUN}")


def _run(llm: LLM) -> Any:
    async def run(requests: Any) -> Any:
        return llm.client.run(requests, None)

    return run


def test_without_being_asked_a_new_answer_begins() -> None:
    with scripted_llm("none", whole) as llm:
        [answer] = llm.chat(begun(), PARAMS)
    assert answer.text == WHOLE


@pytest.mark.parametrize("wordings", [1, 2])
def test_given_text_is_neither_checked_nor_written_again(wordings: int) -> None:
    verifier = Answers({"Lyon is in France.": [Verdict.REFUTED], "It is wet.": [Verdict.REFUTED]})
    settings = {**LOOP, "memory": {"unit_tokens": 16}}
    settings["feedback"] = {**LOOP["feedback"], "wordings": wordings, "on_exhausted": "keep_best"}

    def answer(prompt: str, num_units: int) -> str:
        return WHOLE if num_units else WHOLE.replace("sunny", "wet")

    with scripted_llm("none", answer, settings, verifier=verifier) as llm:
        [told] = llm.chat(begun(), PARAMS, continue_final_message=True)
    assert told.text == REST
    assert told.sentences[0].removed == ("wet.",)
    seen = {(request.preceding, request.sentence) for request in verifier.seen}
    assert seen == {
        ("Lyon is in France. ", "It is wet."),
        ("Lyon is in France. ", "It is sunny."),
        ("Lyon is in France. It is sunny. ", "It rains."),
    }


def test_a_quotation_takes_no_place_that_was_begun() -> None:
    verifier = Answers({"It is sunny.": [Verdict.REFUTED] * 3})
    settings = {"feedback": {**LOOP["feedback"], "on_exhausted": "quote"}, "memory": {"unit_tokens": 16}}
    with scripted_llm("none", whole, settings, verifier=verifier) as llm:
        [told] = llm.chat(begun(), PARAMS, continue_final_message=True)
    assert not any(sentence.quotes for sentence in told.sentences)


@pytest.mark.parametrize("kind", ["may-think", "must-think"])
def test_an_answer_that_has_begun_is_not_reasoned_about(kind: str) -> None:
    with scripted_llm(kind, whole) as llm:
        [answer] = llm.chat(begun(), PARAMS, thinking=True, continue_final_message=True)
    assert (answer.reasoning, answer.text) == ("", REST)


@pytest.mark.parametrize("kind", ["may-think", "must-think"])
def test_what_was_begun_to_be_reasoned_is_gone_on_with(kind: str) -> None:
    thought = f"<think>\nWell, Lyon is in a warm country.\n</think>\n\n{WHOLE}"
    with scripted_llm(kind, lambda prompt, units: thought) as llm:
        [answer] = llm.chat(begun("<think>\nWell, Lyon"), PARAMS, continue_final_message=True)
    assert (answer.reasoning, answer.text) == (" is in a warm country.", WHOLE)


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([QUESTION], "the last one is to be gone on with"),
        ([QUESTION, {"role": "assistant", "content": "  "}], "with a text"),
        ([QUESTION, {"role": "assistant", "content": "", "tool_calls": [{}]}], "without calls"),
    ],
)
def test_only_words_of_the_assistant_are_gone_on_with(messages: Any, why: str) -> None:
    with scripted_llm("none", whole) as llm, pytest.raises(InvalidRequestError, match=why):
        llm.chat(messages, PARAMS, continue_final_message=True)


def test_what_must_have_a_form_from_its_first_word_cannot_be_begun() -> None:
    pytest.importorskip("llguidance", reason="ewe-engine[structured] is not installed")
    with scripted_llm("none", whole) as llm, pytest.raises(InvalidRequestError, match="must be JSON"):
        llm.chat(begun("{"), SamplingParams(max_tokens=9, json_schema={}), continue_final_message=True)


def test_policies_that_put_answers_together_refuse_it() -> None:
    with (
        scripted_llm("none", whole, {"policy": "rewrite-after"}, verifier=Answers({})) as llm,
        pytest.raises(InvalidRequestError, match="rewrite-after puts the answer together"),
    ):
        llm.chat(begun(), PARAMS, continue_final_message=True)


# --- The server


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with scripted_llm("none", whole) as opened:
        yield opened
        wait_until_idle(opened)


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address


@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions_go_on_with_the_last_message(url: str, stream: bool) -> None:
    asked = {"model": "scripted", "messages": begun(), "max_tokens": 100, "n": 2, "extra_body": WITH}
    completions = openai_client(url, strict=not stream).chat.completions
    if not stream:
        answer = completions.create(**asked)
        assert [choice.message.content for choice in answer.choices] == [REST, REST]
        [first, *_] = answer.ewe["sentences"]
        assert REST[first["start_index"] : first["end_index"]] == "sunny."
        return
    texts = {0: "", 1: ""}
    for chunk in completions.create(**asked, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == {0: REST, 1: REST}


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"continue_final_message": True, "add_generation_prompt": True}, "add_generation_prompt"),
        ({"add_generation_prompt": False}, "add_generation_prompt"),
        ({**WITH, "messages": [QUESTION]}, "the last one is to be gone on with"),
        ({**WITH, "response_format": {"type": "json_object"}}, "must be JSON"),
    ],
)
def test_what_does_not_go_together_is_refused(url: str, more: Any, named: str) -> None:
    answer = http.post(f"{url}/v1/chat/completions", json={"messages": begun(), "max_tokens": 9, **more})
    assert answer.status_code == 400
    assert named in answer.json()["error"]["message"]


def test_tokenize_counts_it(url: str) -> None:
    def ids(**more: Any) -> list[int]:
        return list(http.post(f"{url}/tokenize", json=more).json()["tokens"])

    begun_ids = ids(messages=begun(), **WITH)
    assert begun_ids == [*ids(messages=[QUESTION]), *ids(prompt=BEGUN)]
    assert http.post(f"{url}/tokenize", json={"prompt": "a", **WITH}).status_code == 400


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_last_message_may_be_the_assistants(url: str, stream: bool) -> None:
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    asked: Any = {"model": "scripted", "max_tokens": 100, "messages": begun()}
    if stream:
        with client.stream(**asked) as told:
            message = told.get_final_message()
    else:
        message = client.create(**asked)
    assert [block.text for block in message.content] == [REST]
    # An answer that the limit cut, sent back in its blocks, goes on where it stopped.
    blocks = [{"type": "text", "text": part} for part in ("Lyon is in France.", " It is")]
    assert client.create(**{**asked, "messages": begun(blocks)}).content[0].text == REST  # type: ignore[arg-type]
    counted = [client.count_tokens(model="scripted", messages=said).input_tokens for said in ([QUESTION], begun())]
    assert counted[0] < counted[1]


@pytest.mark.parametrize(
    "said",
    [
        [{"type": "thinking", "thinking": "Well.", "signature": "a"}],
        [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
        [{"type": "text", "text": "So"}, {"type": "tool_use", "id": "a", "name": "f", "input": {}}],
    ],
)
def test_anthropics_last_message_needs_a_text_and_no_calls(url: str, said: Any) -> None:
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    with pytest.raises(anthropic.BadRequestError, match="messages: the last one"):
        client.create(model="scripted", max_tokens=9, messages=begun(said))


def test_a_sentence_that_was_begun_is_cited(url: str) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Lyon is in France."}
    document = {"type": "document", "source": source, "citations": {"enabled": True}}
    said = [{"role": "user", "content": [document, {"type": "text", "text": "How is Lyon?"}]}, begun("Lyon is")[1]]
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
    first, *_ = client.create(model="scripted", max_tokens=100, messages=said).content  # type: ignore[arg-type]
    assert (first.text, first.citations[0].cited_text) == (" in France.", "Lyon is in France.")


def test_batches_go_on_with_it(llm: LLM, tmp_path: Path) -> None:
    from ewe.cli.main import app

    body = {"messages": begun(), "max_tokens": 100, **WITH}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    given, results = tmp_path / "requests.jsonl", tmp_path / "results.jsonl"
    given.write_text(json.dumps(line) + "\n")
    with mock.patch("ewe.cli.batch_run.open_llm", return_value=llm), mock.patch.object(llm, "close"):
        result = CliRunner().invoke(app, ["batch", str(given), "--output", str(results)])
    assert result.exit_code == 0, result.output
    answer = json.loads(results.read_text())["response"]["body"]
    assert answer["choices"][0]["message"]["content"] == REST
