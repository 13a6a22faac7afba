"""Models that reason before they answer, through Python, policies and the server's forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from script_rig import scripted_llm
from server_rig import http, openai_client, serving, wait_until_idle
from unit.engine_parts import Answers, Notebook

from ewe import LLM, SamplingParams
from ewe.config.memory_mark import PlacedPrompt
from ewe.server.app import create_app
from ewe.types import Verdict

openai = pytest.importorskip("openai", reason="the openai client is not installed")

ASKED: Any = [{"role": "user", "content": "How is Lyon?"}]
PARAMS = SamplingParams(max_tokens=200)
THOUGHT, ANSWER = "Lyon is in Peru. It is a city.", "Lyon is in France. It is sunny."
OFF = f"<think>\n\n</think>\n\n{ANSWER}"  # as the prompt begins it
ON = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
LOOP = {"feedback": {"verify_every": 1, "retrieve_every": 1, "max_attempts": 3}}
KINDS = ["may-think", "must-think"]


def script(text: str) -> Any:
    return lambda prompt, units: text


def fields(answer: Any) -> tuple[str, str]:
    return answer.reasoning, answer.text


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_reasoned_is_told_apart(kind: str) -> None:
    with scripted_llm(kind, script(ON)) as llm:
        [answer] = llm.chat(ASKED, PARAMS, thinking=True)
        again = llm.generate(llm.apply_chat_template(ASKED, thinking=True), PARAMS)
    assert fields(answer) == fields(again[0]) == (THOUGHT, ANSWER)
    assert 0 < answer.stats.reasoning_tokens < answer.stats.tokens_kept == len(answer.token_ids)


@pytest.mark.parametrize("kind", KINDS)
def test_without_it_the_model_answers_at_once(kind: str) -> None:
    with scripted_llm(kind, script(OFF)) as llm:
        [answer] = llm.chat(ASKED, PARAMS, thinking=False)
    assert fields(answer) == ("", ANSWER)
    assert answer.stats.reasoning_tokens == 0


@pytest.mark.parametrize(
    ("kind", "setting", "thinks"),
    [
        ("may-think", "auto", False),
        ("must-think", "auto", True),
        ("may-think", "on", True),
        ("must-think", "off", False),
        ("none", "on", False),
    ],
)
def test_the_setting_says_so_where_a_request_does_not(kind: str, setting: str, thinks: bool) -> None:
    def tail(prompt: PlacedPrompt | str) -> str:
        text = prompt if isinstance(prompt, str) else prompt.text
        return text.partition("<|assistant|>")[2]

    with scripted_llm(kind, script(ON), {"model": {"thinking": setting}}) as llm:
        open_end = "<think>\n" if kind == "must-think" else ""
        expected = open_end if thinks or kind == "none" else "<think>\n\n</think>\n\n"
        assert tail(llm.chat_prompt(ASKED)) == tail(llm.apply_chat_template(ASKED)) == expected
        placed = llm.chat_prompt(ASKED)
        assert isinstance(placed, PlacedPrompt)
        assert tail(placed.after) == expected


def test_nothing_of_it_is_retrieved_for_checked_or_written_again() -> None:
    retriever = Notebook()
    verifier = Answers({"Lyon is in Spain.": [Verdict.REFUTED], "Lyon is in Peru.": [Verdict.REFUTED]})

    def answer(prompt: str, num_units: int) -> str:
        is_told = "against lyon is in spain" in prompt or (num_units > 0 and verifier.seen)
        return ON if is_told else ON.replace("France", "Spain")

    settings = {**LOOP, "memory": {"unit_tokens": 16, "question_passages": "prompt"}}
    with scripted_llm("may-think", answer, settings, verifier=verifier, datastore=retriever) as llm:
        [told] = llm.chat(ASKED, PARAMS, thinking=True)
    assert fields(told) == (THOUGHT, ANSWER)
    assert told.sentences[0].removed == ("Lyon is in Spain.",)
    assert {request.sentence for request in verifier.seen} == {
        "Lyon is in Spain.",
        "Lyon is in France.",
        "It is sunny.",
    }
    assert not any("Peru" in query for query in retriever.queries)
    # The rewrite began behind what was reasoned.
    assert told.stats.tokens_discarded < told.stats.reasoning_tokens


def test_one_that_goes_in_circles_is_left_to_the_limit() -> None:
    verifier = Answers({})
    with scripted_llm("may-think", script("<think>" + "on and on, " * 99), LOOP, verifier=verifier) as llm:
        [answer] = llm.chat(ASKED, SamplingParams(max_tokens=120), thinking=True)
    assert (answer.text, answer.finish_reason, answer.sentences) == ("", "length", ())
    assert len(answer.token_ids) == answer.stats.reasoning_tokens == 120
    assert verifier.seen == []


def test_a_stream_tells_it_as_it_comes() -> None:
    with scripted_llm("may-think", script(ON)) as llm:
        events = list(llm.stream(llm.apply_chat_template(ASKED, thinking=True), PARAMS, add_special_tokens=False))
    kinds = [event.kind for event in events if event.kind in ("reasoning", "draft", "text")]
    assert "".join(event.data["text"] for event in events if event.kind == "reasoning") == THOUGHT
    assert "".join(event.data["text"] for event in events if event.kind == "text") == ANSWER
    assert kinds.count("reasoning") > 5
    assert "reasoning" not in kinds[kinds.index("draft") :]


@pytest.mark.parametrize("policy", ["cove", "rewrite-after", "flare"])
def test_policies_that_put_an_answer_together_have_it_written_at_once(policy: str) -> None:
    prompts: list[str] = []

    def answer(prompt: str, num_units: int) -> str:
        prompts.append(prompt)
        return OFF

    with scripted_llm("must-think", answer, {"policy": policy}, datastore=Notebook()) as llm:
        [told] = llm.chat(ASKED, PARAMS, thinking=True)
    assert told.reasoning == ""
    assert prompts


def test_ra_reasons_with_its_passages() -> None:
    prompts: list[str] = []

    def answer(prompt: str, num_units: int) -> str:
        prompts.append(prompt)
        return ON

    with scripted_llm("may-think", answer, {"policy": "ra"}, datastore=Notebook()) as llm:
        [told] = llm.chat(ASKED, PARAMS, thinking=True)
    assert fields(told) == (THOUGHT, ANSWER)
    assert "note 1" in prompts[-1]


def test_json_leaves_no_room_for_it() -> None:
    pytest.importorskip("llguidance", reason="ewe-engine[structured] is not installed")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with scripted_llm("must-think", script('<think>\n\n</think>\n\n{"n": 7}')) as llm:
        [answer] = llm.chat(ASKED, SamplingParams(max_tokens=60, json_schema=schema), thinking=True)
    assert (answer.reasoning, json.loads(answer.text)) == ("", {"n": 7})


# --- The server


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    def answer(prompt: str, num_units: int) -> str:
        return ON if "Think." in prompt else OFF

    with scripted_llm("may-think", answer) as opened:
        yield opened
        wait_until_idle(opened)


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address


THINK: Any = [{"role": "user", "content": "Think. How is Lyon?"}]
WITH = {"chat_template_kwargs": {"enable_thinking": True}}


def test_chat_completions_have_it_beside_the_content(url: str) -> None:
    client = openai_client(url)
    answer = client.chat.completions.create(
        model="scripted", messages=THINK, max_tokens=200, logprobs=True, extra_body=WITH
    )
    [choice] = answer.choices
    assert (choice.message.reasoning_content, choice.message.content) == (THOUGHT, ANSWER)
    assert "".join(token.token for token in choice.logprobs.content) == ANSWER
    assert answer.usage.completion_tokens_details.reasoning_tokens > 10
    # What came is sent back as it is.
    history = [*THINK, choice.message.model_dump(exclude_none=True), {"role": "user", "content": "And Oslo?"}]
    assert client.chat.completions.create(model="scripted", messages=history, max_tokens=200).choices


def test_they_stream_it_first(url: str) -> None:
    stream = openai_client(url).chat.completions.create(
        model="scripted", messages=THINK, max_tokens=200, stream=True, extra_body=WITH
    )
    deltas = [choice.delta for chunk in stream for choice in chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == THOUGHT
    assert "".join(delta.content or "" for delta in deltas) == ANSWER


@pytest.mark.parametrize("options", [{}, {"enable_thinking": False}, {"enable_thinking": None}])
def test_without_being_asked_nobody_reasons(url: str, options: dict[str, Any]) -> None:
    body = {"model": "scripted", "messages": ASKED, "max_tokens": 200, "chat_template_kwargs": options}
    answer = http.post(f"{url}/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == ANSWER
    assert answer["choices"][0]["message"]["reasoning_content"] is None
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0


def test_what_is_neither_yes_nor_no_is_refused_by_name(url: str) -> None:
    body = {"messages": ASKED, "chat_template_kwargs": {"enable_thinking": "much"}}
    answer = http.post(f"{url}/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "enable_thinking" in answer.json()["error"]["message"]


def test_tokenize_counts_the_prompt_that_would_be_read(url: str) -> None:
    counts = [
        http.post(f"{url}/tokenize", json={"messages": ASKED, **more}).json()["count"]
        for more in ({}, {"chat_template_kwargs": {"enable_thinking": True}})
    ]
    assert counts[0] > counts[1]


def test_completions_keep_it_in_the_text(llm: LLM, url: str) -> None:
    prompt = llm.apply_chat_template(THINK, thinking=True)
    body = {"prompt": prompt, "max_tokens": 200, "add_special_tokens": False}
    assert http.post(f"{url}/v1/completions", json=body).json()["choices"][0]["text"] == ON
