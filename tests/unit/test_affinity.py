"""The key of a request: what is alike in what its units will be has the same one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.server.traffic.affinity import SeenKeys, affinity_key


def chat(text: Any, **body: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}], **body}


def test_the_same_question_has_the_same_key_wherever_it_is_asked() -> None:
    asked = [
        *(chat("Who was Ada?"), chat(" who was ADA "), chat([{"type": "text", "text": "Who was Ada?"}])),
        *({"input": "Who was Ada?"}, {"prompt": ["Who was Ada?", "x"]}, {"text": "Who was Ada?"}),
        {"messages": [*chat("x")["messages"], *chat("Who was Ada?")["messages"]]},
    ]
    assert {affinity_key("", body) for body in asked} == {"question who was ada"}
    assert affinity_key("", chat("Who was Ida?")) != "question who was ada"


def test_what_decides_the_units_comes_before_the_words() -> None:
    passages = {"Who was Ada?": "Ada Lovelace", "When did she die?": ""}
    find = passages.__getitem__
    assert affinity_key("", chat("Who was Ada?"), find) == "passage Ada Lovelace"
    assert affinity_key("", chat("When did she die?"), find) == "question when did she die"
    assert affinity_key("", chat("?", memory={"user": "u"})) == "memory u "
    assert affinity_key("", chat("?", memory={"user": "u"}, documents=["a"])).startswith("document ")
    assert affinity_key("", chat("?", documents=["a"], prompt_cache_key="mine")) == "caller mine"
    assert affinity_key("", {"input": [1, 2]}) == affinity_key("", {}) == affinity_key("", chat("?")) == ""


def test_requests_that_share_most_documents_mostly_meet() -> None:
    shared = [{"text": f"document {number}"} for number in range(9)]
    key = affinity_key("", {"documents": shared})
    assert affinity_key("", {"documents": shared[::-1]}) == key
    met = [affinity_key("", {"documents": [*shared, f"own {number}"]}) == key for number in range(200)]
    assert 0.8 < sum(met) / 200 < 0.98, "nine in ten"
    assert affinity_key("", {"documents": [{"title": "t", "text": "a"}]}) != affinity_key("", {"documents": ["a"]})


def test_documents_count_in_whatever_form_they_come() -> None:
    result = {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "a"}]}
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}
    fields = {"id": "1", "data": {"text": "a"}}
    for first, second in (
        (chat([result, {"type": "text", "text": "Who?"}]), chat([{"type": "text", "text": "When?"}, result])),
        (chat([plain, {"type": "text", "text": "Who?"}]), chat([plain, {"type": "text", "text": "When?"}])),
        (chat("Who?", documents=[fields]), chat("When?", documents=[{**fields, "id": "2"}])),
    ):
        assert affinity_key("", first) == affinity_key("", second)
        assert affinity_key("", first).startswith("document ")
    assert affinity_key("", chat("?", documents=[fields])) != affinity_key("", chat("?", documents=[{"data": "b"}]))


LEAVES = st.sampled_from([None, True, 1.5, "", "x", "\ud800"])
JSON = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=2) | st.dictionaries(st.sampled_from(["role", "content"]), part)
)
NAMES = st.sampled_from(["messages", "documents", "memory", "input", "prompt", "text", "prompt_cache_key"])


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(NAMES, JSON, max_size=3))
def test_any_body_has_a_key(body: dict[str, Any]) -> None:
    assert affinity_key("", body) == affinity_key("", body)


def test_what_the_caller_says_comes_first_and_the_header_before_the_body() -> None:
    body = chat("?", documents=["a"], prompt_cache_key="mine")
    assert affinity_key("mine too", body) == affinity_key("mine too", None) == "session mine too"
    assert affinity_key("", body) == "caller mine"


def test_a_document_is_the_same_however_it_is_sent() -> None:
    alike: list[Any] = [
        *("A text.", " A text.\n", {"text": "A text."}, {"text": "A text.", "id": "7", "title": "", "url": "u"}),
        {"text": "A text.", "veracity": 0.5, "title": None},
    ]
    assert len({affinity_key("", {"documents": [item]}) for item in alike}) == 1
    for other in ("B text.", {"text": "A text.", "title": "T"}, {"text": "A text.", "date": "1999"}):
        assert affinity_key("", {"documents": [other]}) != affinity_key("", {"documents": alike[:1]})


def test_what_shares_no_units_because_of_its_salt_has_another_key() -> None:
    for body in (chat("Who?"), {"documents": ["a"]}, {"memory": {"user": "u"}}):
        assert affinity_key("", {**body, "cache_salt": "s"}) != affinity_key("", body)
        assert affinity_key("", {**body, "cache_salt": ["s"]}) == affinity_key("", body)
    assert affinity_key("", {"cache_salt": "s"}) == ""


def test_the_keys_seen_last_are_remembered() -> None:
    seen = SeenKeys(2)
    assert [seen.take(key) for key in "aabbcabc"] == [False, True, False, True, False, False, False, False]
