"""LLM.chat and AsyncLLM.chat: one conversation or many, their parameters, and what is no conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from e2e.llm_rig import MAX_LEN, loaded, tiny_llm

from ewe import LLM, AsyncLLM, SamplingParams
from ewe.errors import InvalidRequestError
from ewe.text.conversation import as_conversations

TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}It"
TEN = SamplingParams(max_tokens=10, ignore_eos=True)
RIVER = [{"role": "user", "content": "The river"}]
SEA = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "The sea"},
    {"role": "assistant", "content": "It flows."},
    {"role": "user", "content": "And then?"},
]
TALKS = [SEA, RIVER, RIVER]


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with tiny_llm() as engine, pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.tokenizer, "chat_template", TEMPLATE)
        yield engine
        engine.check_integrity()


def drawn(seed: int, n: int = 1) -> SamplingParams:
    return replace(TEN, temperature=0.9, seed=seed, n=n)


def test_many_conversations_are_answered_in_order_as_each_alone(llm: LLM) -> None:
    found = llm.chat(TALKS, TEN)
    assert [answer.prompt for answer in found] == [llm.apply_chat_template(talk) for talk in TALKS]
    assert [answer.token_ids for answer in found] == [llm.chat(talk, TEN)[0].token_ids for talk in TALKS]
    assert found[0].token_ids != found[1].token_ids


def test_the_question_is_the_users_last_message(llm: LLM) -> None:
    assert [request.question for request in llm.chat_requests(TALKS)] == ["And then?", "The river", "The river"]


def test_a_tuple_of_conversations_is_one_too_and_results_are_told_as_they_come(llm: LLM) -> None:
    told: dict[int, Any] = {}
    found = llm.chat(tuple(tuple(talk) for talk in TALKS), TEN, on_result=told.__setitem__)
    assert [told[number].token_ids for number in range(3)] == [answer.token_ids for answer in found]


def test_every_conversation_may_have_parameters_of_its_own(llm: LLM) -> None:
    params = [drawn(1, n=2), drawn(2), drawn(3)]
    found = llm.chat(TALKS, params)
    alone = [llm.chat(talk, own) for talk, own in zip(TALKS, params, strict=True)]
    assert [answer.token_ids for answer in found] == [answer.token_ids for answers in alone for answer in answers]
    assert [answer.index for answer in found] == [0, 1, 0, 0]
    with pytest.raises(InvalidRequestError, match="2 SamplingParams for 3 conversations"):
        llm.chat(TALKS, params[:2])


def test_asyncio_gets_the_same_answers(llm: LLM) -> None:
    engine = AsyncLLM("tiny", config=llm.config, loaded=loaded())

    async def ask() -> list[Any]:
        return [await engine.chat(TALKS, [drawn(1, n=2), drawn(2), drawn(3)]), await engine.chat(RIVER, TEN)]

    try:
        many, one = asyncio.run(ask())
        engine.llm.check_integrity()
    finally:
        engine.close()
    expected = llm.chat(TALKS, [drawn(1, n=2), drawn(2), drawn(3)])
    assert [answer.token_ids for answer in many] == [answer.token_ids for answer in expected]
    assert [answer.token_ids for answer in one] == [llm.chat(RIVER, TEN)[0].token_ids]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], "messages is empty: give at least one message"),
        ("Who?", "messages must be a list, .* got str"),
        (RIVER[0], "messages must be a list, .* got dict"),
        (None, "messages must be a list, .* got nothing"),
        (["Who?"], r"messages\[0\] must be a message as in .* got str"),
        ([{"role": "user"}], r'messages\[0\] must have a text under "content", .* got nothing'),
        ([*RIVER, {"content": "Who?"}], r'messages\[1\] must have a text under "role", .* got nothing'),
        ([{"role": "user", "content": []}], r"messages\[0\] .* got list"),
        ([{"role": "user", "content": ["Who?"]}], r"messages\[0\]: content\[0\] must be a text, .* got str"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], r"content\[0\] .* got image_url"),
        ([{"role": "user", "content": [{"type": "text", "text": None}]}], r"content\[0\] .* got text"),
        ([RIVER, []], r"messages\[1\] is empty"),
        ([RIVER, RIVER[0]], r"messages\[1\] must be a list, .* got dict"),
        ([RIVER, [{"role": "user", "content": 7}]], r"messages\[1\]\[0\] .* got int"),
        ([RIVER, [{"role": "user", "content": "sea " * 300}]], f"model.max_model_len {MAX_LEN}"),
    ],
)
def test_what_is_no_conversation_is_refused_before_anything_is_computed(llm: LLM, messages: Any, expected: str) -> None:
    with pytest.raises(InvalidRequestError, match=expected):
        llm.chat(messages, TEN)
    assert not llm.client._waiting


def test_contents_may_be_parts_as_the_server_takes_them(llm: LLM) -> None:
    parts = [{"type": "text", "text": "The river"}, {"type": "text", "text": "and the sea"}]
    plain = "The river\nand the sea"
    [request] = llm.chat_requests([{"role": "user", "content": parts}])
    [expected] = llm.chat_requests([{"role": "user", "content": plain}])
    assert (request.question, request.prompt) == (plain, expected.prompt)
    [answer] = llm.chat([{"role": "user", "content": parts}], TEN)
    assert answer.prompt == llm.apply_chat_template([{"role": "user", "content": plain}])


def test_parameters_have_vllms_names(llm: LLM) -> None:
    expected = [answer.token_ids for answer in llm.generate(["The river", "The sea"], [TEN, drawn(2)])]
    named = llm.generate(prompts=["The river", "The sea"], sampling_params=[TEN, drawn(2)], use_tqdm=False)
    assert [answer.token_ids for answer in named] == expected
    [answer] = llm.chat(messages=RIVER, sampling_params=TEN, use_tqdm=False)
    assert answer.token_ids == llm.chat(RIVER, TEN)[0].token_ids
    with pytest.raises(InvalidRequestError, match=r"use_tqdm: no bar .* on_result"):
        llm.generate("The river", TEN, use_tqdm=True)
    with pytest.raises(InvalidRequestError, match=r"use_tqdm: no bar .* on_result"):
        llm.chat(RIVER, TEN, use_tqdm=True)


def test_one_and_many_are_told_apart() -> None:
    assert as_conversations(SEA) == [SEA]
    assert as_conversations([SEA]) == [SEA]
    assert as_conversations((SEA, RIVER)) == [SEA, RIVER]


def test_generate_stays_raw(llm: LLM) -> None:
    [answer] = llm.generate("The river", TEN)
    assert answer.prompt == "The river"
    assert answer.stats.prompt_tokens == len(llm.tokenizer("The river")["input_ids"])
