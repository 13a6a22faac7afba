"""Which responses are kept for which key, how much memory they take, and how what they answered is listed."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi")

from ewe.errors import InvalidRequestError
from ewe.server.http.error_responses import RefusedError
from ewe.server.http.json_sizes import MOST_NUMBERS
from ewe.server.openai.stored_responses import list_input_items
from ewe.server.response_store import ResponseStore, StoredResponse
from ewe.server.schemas.response_answers import OutputMessage, OutputText, ResponseBody, TokenLogprob
from ewe.server.schemas.response_items import InputMessage
from ewe.server.schemas.response_schemas import MOST_ITEMS, ResponsesRequest


def response(
    name: str, text: str = "Yes.", items: tuple[InputMessage, ...] = (), logprobs: Sequence[TokenLogprob] = ()
) -> StoredResponse:
    part = OutputText(text=text, annotations=[], logprobs=list(logprobs))
    body = ResponseBody(
        id=name,
        created_at=1,
        status="completed",
        instructions=None,
        max_output_tokens=None,
        metadata={},
        model="tiny",
        output=[OutputMessage(id=f"msg_{name}", status="completed", content=[part])],
        parallel_tool_calls=True,
        temperature=0.0,
        tool_choice="auto",
        tools=[],
        top_p=1.0,
        reasoning={"effort": None, "summary": None},
        store=True,
    )
    return StoredResponse.of(body, items)


def said(text: str, **more: Any) -> InputMessage:
    return InputMessage(role="user", content=text, **more)


def has(store: ResponseStore, key: str, name: str) -> bool:
    try:
        return store.get(key, name).id == name
    except RefusedError:
        return False


def test_each_key_has_its_own() -> None:
    store = ResponseStore(1 << 20)
    store.put("mine", response("a"))
    assert (has(store, "mine", "a"), has(store, "others", "a"), has(store, "", "a")) == (True, False, False)
    with pytest.raises(RefusedError):
        store.delete("others", "a")
    store.delete("mine", "a")
    assert not has(store, "mine", "a")


def test_the_oldest_go_and_what_is_deleted_makes_room() -> None:
    size = response("a").num_bytes
    store = ResponseStore(2 * size)
    for name in "abc":
        store.put("mine", response(name))
    store.put("others", response("o"))
    assert [has(store, "mine", name) for name in "abc"] == [False, True, True]
    store.delete("mine", "b")
    store.put("mine", response("d"))
    assert [has(store, "mine", name) for name in "cd"] == [True, True]
    assert has(store, "others", "o")


def test_one_that_is_larger_than_all_room_pushes_out_no_other() -> None:
    store = ResponseStore(2 * response("a").num_bytes)
    store.put("mine", response("a"))
    store.put("mine", response("b", "No. " * 10_000))
    assert (has(store, "mine", "a"), has(store, "mine", "b")) == (True, False)


def test_they_take_about_as_much_memory_as_is_counted() -> None:
    items = tuple(said(f"What is {number}?") for number in range(500))
    store = ResponseStore(1 << 30)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(4):
        store.put("mine", response(f"r{number}", items=tuple(item.model_copy() for item in items)))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < 2 * 4 * store.get("mine", "r0").num_bytes


def test_what_follows_reads_what_was_said_and_answered() -> None:
    stored = response("a", items=(said("Is it?"),))
    messages = ResponsesRequest(input="Why?").messages(stored.conversation(1 << 20))
    assert [message["content"] for message in messages] == ["Is it?", "Yes.", "Why?"]


def test_what_has_grown_larger_than_a_request_cannot_be_followed() -> None:
    stored = response("a", items=(said("a" * 1000),))
    assert len(stored.conversation(len(stored.said))) == 2
    with pytest.raises(RefusedError, match="'a' is larger than a request may be") as caught:
        stored.conversation(len(stored.said) - 1)
    assert caught.value.code == "context_length_exceeded"
    many = response("a", items=(said("," * MOST_NUMBERS),))
    with pytest.raises(RefusedError, match="larger than a request"):
        many.conversation(1 << 30)


def test_what_was_likely_is_no_part_of_what_was_said() -> None:
    token = TokenLogprob(token="Yes", logprob=-0.5, bytes=None, top_logprobs=[])
    stored = response("a", logprobs=[token])
    assert b"-0.5" in stored.body
    assert b"-0.5" not in stored.said


def pages(stored: StoredResponse, **more: Any) -> Any:
    store = ResponseStore(1 << 20)
    store.put("", stored)
    service = SimpleNamespace(responses=store)
    request: Any = SimpleNamespace(scope={}, app=SimpleNamespace(state=SimpleNamespace(service=service)))
    return asyncio.run(list_input_items(stored.id, request, **more))


def test_pages_end_where_a_client_gave_its_items_one_id() -> None:
    stored = response("a", items=tuple(said(text, id="same") for text in "abcde"))
    seen, after = [], None
    for _ in range(3):
        page = pages(stored, order="asc", limit=2, after=after)
        seen += [item["content"][0]["text"] for item in page.data]
        after = page.last_id
    assert ("".join(seen), page.has_more) == ("abcde", False)


def test_a_page_after_an_item_that_is_none_is_refused() -> None:
    with pytest.raises(RefusedError, match="after: there is no item 'another'"):
        pages(response("a", items=(said("Is it?"),)), order="asc", limit=2, after="another")


def test_a_conversation_has_no_more_items_than_one_request_may_have() -> None:
    before = [said("a")] * MOST_ITEMS
    with pytest.raises(InvalidRequestError, match=f"{MOST_ITEMS + 1} items"):
        ResponsesRequest(input="b").messages(before)
