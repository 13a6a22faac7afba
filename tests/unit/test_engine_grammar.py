"""Grammars of JSON schemas: where a text stands in one, after any rewind."""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llguidance", reason="llguidance is not installed")

from transformers import AutoTokenizer

from ewe.engine.sampling.grammar import Grammar, Grammars, _on_deep_stack
from ewe.errors import SchemaError

TOKENIZER = AutoTokenizer.from_pretrained(Path(__file__).parents[2] / "ewe" / "evaluation" / "world" / "model")
EOS, VOCAB = 1, 2050  # two more logits than tokens, as models have them
GRAMMARS = Grammars(TOKENIZER, VOCAB, frozenset({EOS}))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "born": {"type": "integer", "minimum": 0, "maximum": 2000},
        "tags": {"type": "array", "items": {"enum": ["a", "é", 1]}, "minItems": 1, "maxItems": 2},
    },
    "required": ["name", "born", "tags"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("took_s", "too_long_after"), [(0.01, 50), (0.0015, None)])
def test_a_grammar_that_holds_up_all_answers_ends_its_own(
    monkeypatch: pytest.MonkeyPatch, took_s: float, too_long_after: int | None
) -> None:
    clock = itertools.count()
    monkeypatch.setattr("ewe.engine.sampling.grammar.time.thread_time", lambda: next(clock) * took_s)
    grammar = Grammars(TOKENIZER, VOCAB, frozenset({EOS})).of_lark('start: "a"*')  # which follows two texts at first
    first = next((count for count in range(2, 600) if grammar.follow([])), None)
    assert first is None if too_long_after is None else abs(first - too_long_after) <= 1
    again = grammar.copy().follow([])  # so it does for whoever asks for it once more
    assert ("ms for each token" in again) is (too_long_after is not None)


def test_only_the_compilers_thread_has_its_deep_stack() -> None:
    def call() -> int:
        _on_deep_stack(str)  # begins once the thread of the outer call has been started
        return threading.stack_size()

    # Threads that others start while it compiles would have it, too, and two at once would leave it for all.
    assert _on_deep_stack(call) == threading.stack_size() < 1 << 28


def walk(grammar: Grammar, ids: list[int], count: int, rng: random.Random) -> list[int]:
    """Goes on with up to `count` tokens that the grammar allows, and stops where the text must end."""
    for _ in range(count):
        assert grammar.follow(ids) == ""
        choices = [int(token) for token in grammar.allowed.nonzero()[0]]
        assert choices
        if choices == [EOS]:
            break
        ids = [*ids, rng.choice(choices)]
    return ids


@given(st.integers(0, 1 << 30))
@settings(max_examples=40)
def test_whatever_is_allowed_ends_in_json_of_the_schema(seed: int) -> None:
    ids = walk(GRAMMARS.of_schema(SCHEMA), [], 200, random.Random(seed))
    found = json.loads(TOKENIZER.decode(ids, clean_up_tokenization_spaces=False))
    assert list(found) == ["name", "born", "tags"]
    assert len(found["name"]) <= 12
    assert 0 <= found["born"] <= 2000
    assert {*found["tags"]} <= {"a", "é", 1}


@given(st.integers(0, 1 << 30), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12)), max_size=6))
@settings(max_examples=60)
def test_after_any_rewinds_all_is_as_if_nothing_had_been_taken_back(seed: int, moves: list[tuple[float, int]]) -> None:
    rng = random.Random(seed)
    grammar = GRAMMARS.of_schema(SCHEMA)
    ids = walk(grammar, [], 30, rng)
    for share, count in moves:
        ids = walk(grammar, ids[: int(share * len(ids))], count, rng)
        fresh = GRAMMARS.of_schema(SCHEMA)
        assert (grammar.follow(ids), fresh.follow(ids)) == ("", "")
        assert (grammar.allowed == fresh.allowed).all()


def test_a_text_that_must_end_may_end_and_one_that_may_not_is_not_ended() -> None:
    grammar = GRAMMARS.of_schema({"enum": [1]})
    assert grammar.follow([]) == ""
    assert not grammar.allowed[EOS]
    [one] = grammar.allowed.nonzero()[0].tolist()
    grammar.follow([one])
    assert grammar.allowed.nonzero()[0].tolist() == [EOS]
    assert grammar.allowed_but([EOS]).nonzero()[0].tolist() == [EOS], "nothing else may come"
    number = GRAMMARS.of_schema({"type": "integer"})
    number.follow([one])
    assert number.allowed[EOS]
    assert not number.allowed_but([EOS])[EOS]
    assert not number.allowed[2048:].any(), "ids without a token"


def test_what_the_grammar_does_not_allow_is_told() -> None:
    grammar = GRAMMARS.of_schema({"enum": [1]})
    assert grammar.follow(TOKENIZER("word", add_special_tokens=False)["input_ids"])
    copied = GRAMMARS.of_schema({"enum": [1]})
    assert copied.follow([]) == "", "one text's error is not another's"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "strin"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "string", "format": "odd"}, "odd"),
        ({"$ref": "https://example.org/schema"}, "example.org"),
        ({"type": "string", "pattern": "("}, "regex"),
        ({"enum": [object()]}, "serializable"),
        ({"description": "x" * 100_001}, "the most"),
        ({"const": "\ud800"}, "not JSON"),
        ({"maximum": float("inf")}, "not JSON"),
    ],
)
def test_schemas_that_cannot_be_kept_to_are_refused(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        GRAMMARS.of_schema(schema)


def test_a_schema_that_has_no_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["items"] = schema
    with pytest.raises(SchemaError, match="more than 120 levels"):
        GRAMMARS.of_schema(schema)


def test_without_the_package_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(SchemaError, match=r"pip install 'ewe-engine\[structured\]'"):
        Grammars(TOKENIZER, VOCAB, frozenset({EOS})).of_schema(SCHEMA)


def test_without_a_tokenizer_that_can_be_read_there_is_no_grammar() -> None:
    with pytest.raises(SchemaError, match="fast tokenizer"):
        Grammars(None, VOCAB, frozenset({EOS})).of_schema(SCHEMA)
