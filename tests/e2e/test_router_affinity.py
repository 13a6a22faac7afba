"""Two real servers behind the router: requests with each kind of key come to where their units are encoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from builtin_rig import CONFIG, loaded_model
from router_rig import ask, routing
from server_rig import http, serving

from ewe import LLM
from ewe.server.app import create_app

KEYS = range(6)


@pytest.fixture(scope="module")
def router() -> Iterator[tuple[str, list[LLM]]]:
    config = CONFIG.override(["verifier=null", "datastore=null"])
    llms = [LLM(config=config, loaded=loaded_model()) for _ in range(2)]
    with (
        serving(create_app(llms[0])) as first,
        serving(create_app(llms[1])) as second,
        routing([first, second], 10_000) as (url, _),
    ):
        yield url, llms
    for llm in llms:
        llm.close()


def text(kind: str, *names: object) -> list[str]:
    return [f"A {kind} text, number {name}." for name in names]


def misses(llms: list[LLM]) -> int:
    return sum(llm.client.status().unit_misses for llm in llms)


def counted(url: str, name: str, kind: str) -> int:
    values = re.findall(
        rf'^ewe:affinity_{name}_total{{kind="{kind}",.*}} (\S+)$', http.get(f"{url}/metrics").text, re.M
    )
    return int(sum(map(float, values)))


def rounds(kind: str, key: int) -> list[dict[str, Any]]:
    """Requests of one key; all units of the last were needed before."""
    first, second = text(kind, key), text(kind, -1 - key)
    if kind == "document":
        return [{"documents": first}, {"documents": [{"text": first[0], "id": "7"}]}, {"documents": [f" {first[0]} "]}]
    said = {"headers": {"x-session-id": f"s{key}"}} if kind == "session" else {"prompt_cache_key": f"c{key}"}
    return [{**said, "documents": each} for each in (first, second, first + second)]


@pytest.mark.parametrize("kind", ["session", "caller", "document"])
def test_requests_land_where_their_units_are(router: tuple[str, list[LLM]], kind: str) -> None:
    url, llms = router
    by: dict[int, set[str]] = {key: set() for key in KEYS}
    for number in range(3):
        before = misses(llms)
        for key in KEYS:
            answer = ask(url, f"What of {number}?", max_tokens=1, **rounds(kind, key)[number])
            assert answer.status_code == 200, answer.text
            assert "x-ewe-ignored" not in answer.headers, "it is a key"
            by[key].add(answer.headers["x-ewe-replica"])
    assert misses(llms) == before, "all of the last were found"
    assert all(len(who) == 1 for who in by.values())
    assert len(set.union(*by.values())) == 2, "both have some"
    assert (counted(url, "requests", kind), counted(url, "hits", kind)) == (3 * len(KEYS), 2 * len(KEYS))


def test_questions_land_where_their_like_was(router: tuple[str, list[LLM]]) -> None:
    url, _ = router
    for question in ("Who was Ada?", "who was ADA", "Who was Ida?", "Who was Ada ?"):
        assert ask(url, question, max_tokens=1).status_code == 200
    assert (counted(url, "requests", "question"), counted(url, "hits", "question")) == (4, 2)
