"""vLLM's structured outputs with the openai client: choices, expressions, grammars and JSON, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from server_rig import PROMPT, http, openai_client, serving, wait_until_idle

from ewe import LLM, SamplingParams
from ewe.server.app import create_app

openai = pytest.importorskip("openai", reason="the openai package is not installed")
pytest.importorskip("llguidance", reason="llguidance is not installed")

ASKED: Any = [{"role": "user", "content": PROMPT}]
CHOICES = ['a "quoted" one', "rain/snow", "Schnee \u2603"]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "additionalProperties": False}


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM("builtin") as opened:
        yield opened


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address
    wait_until_idle(llm)


def ask(url: str, **more: Any) -> str:
    told = openai_client(url).chat.completions.create(
        model="builtin", messages=ASKED, max_tokens=40, temperature=1.0, seed=1, extra_body=more
    )
    return str(told.choices[0].message.content)


def test_an_answer_is_one_of_the_choices(url: str) -> None:
    assert ask(url, structured_outputs={"choice": CHOICES}) in CHOICES
    assert ask(url, guided_choice=CHOICES) in CHOICES
    for choice in CHOICES:
        assert ask(url, structured_outputs={"choice": [choice]}) == choice


@pytest.mark.parametrize("regex", [r"[0-9]{3}/[a-z]{4}\.", r"^[0-9]{3}/[a-z]{4}\.$", r"[0-9]{3}\/[a-z]{4}\."])
def test_an_answer_matches_an_expression(url: str, regex: str) -> None:
    for told in (ask(url, structured_outputs={"regex": regex}), ask(url, guided_regex=regex)):
        assert re.fullmatch(regex, told)


def test_an_answer_follows_a_grammar(url: str, llm: LLM) -> None:
    lark = 'start: NUMBER " is " NUMBER\nNUMBER: /[0-9]{2}/'
    for told in (ask(url, structured_outputs={"grammar": lark}), ask(url, guided_grammar=lark)):
        assert re.fullmatch(r"[0-9]{2} is [0-9]{2}", told)
    [answer] = llm.chat(ASKED, SamplingParams(max_tokens=20, grammar=lark))
    assert re.fullmatch(r"[0-9]{2} is [0-9]{2}", answer.text)


def test_an_answer_is_json(url: str) -> None:
    for more in ({"guided_json": SCHEMA}, {"structured_outputs": {"json": SCHEMA}}):
        assert re.fullmatch(r'\{("n": -?[0-9]+)?\}', ask(url, **more))
    assert ask(url, structured_outputs={"json_object": True}).startswith("{")
    told = http.post(
        f"{url}/v1/completions", json={"prompt": "It is", "max_tokens": 20, "guided_choice": ["so", "not so"]}
    )
    assert told.json()["choices"][0]["text"] in ("so", "not so")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"structured_outputs": {}}, "one of json"),
        ({"structured_outputs": {"choice": ["a"], "regex": "b"}}, "one of json"),
        ({"guided_choice": ["a"], "guided_regex": "b"}, "one form"),
        ({"guided_choice": []}, "choice"),
        ({"guided_regex": "("}, "cannot be kept to"),
        ({"guided_grammar": "start: missing"}, "cannot be kept to"),
        ({"guided_choice": ["a"], "tools": [{"type": "function", "function": {"name": "f"}}]}, "beside tools"),
    ],
)
def test_what_cannot_be_kept_to_is_refused(url: str, more: Any, named: str) -> None:
    with pytest.raises(openai.BadRequestError, match=named) as caught:
        ask(url, **more)
    if named == "cannot be kept to":
        assert [caught.value.param] == list(more)
    with pytest.raises(openai.BadRequestError, match="guided_choice"):
        openai_client(url).responses.create(model="builtin", input=PROMPT, extra_body={"guided_choice": ["a"]})
