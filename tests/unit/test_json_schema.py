"""JSON schemas that have no end, are nested too deep or would hold up everybody: refused, with their place."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ewe.errors import SchemaError
from ewe.text.json_schema import MAX_DEPTH, check_schema
from ewe.text.tool_calls.tools import ToolRequest

TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 3},
                "next": {"anyOf": [{"$ref": "#/$defs/node", "description": "What follows."}, {"type": "null"}]},
                "all": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["name", "next", "all"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


def nested(levels: int, key: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {key: [schema]} if key.endswith("Of") else {key: schema}
    return schema


def defs(**named: Any) -> dict[str, Any]:
    return {"$defs": named, "$ref": "#/$defs/a"}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def holding(part: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": part}, "required": ["x"], **more}


def chain(length: int, link: Any) -> dict[str, Any]:
    """Definitions that each refer to the next one; link: from a reference to a definition."""
    named = {f"d{number}": link(ref(f"d{number + 1}")) for number in range(length)}
    return {"$defs": {**named, f"d{length}": {"type": "string"}}, "$ref": "#/$defs/d0"}


FINE: list[Any] = [
    TREE,
    {"type": "object", "properties": {"c": {"$ref": "#"}}},
    defs(a={"anyOf": [{"type": "string"}, ref("a")]}),
    defs(a={"type": "array", "items": ref("a")}),
    defs(a={"type": ["object", "null"], "properties": {"x": ref("a")}, "required": ["x"]}),
    defs(a=holding({"anyOf": [{"type": "integer"}, ref("a")]})),
    {"type": "object", "additionalProperties": {"$ref": "#"}},
    {"$ref": "#/$defs/a~1b~0c%20d", "$defs": {"a/b~c d": {"type": "string"}}},
    {"$id": "https://example.org/root", **defs(a={"type": "string"})},
    {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}, "const": {"$ref": "x"}},
    {"type": "number", "multipleOf": 0.01},
    {"type": "string", "pattern": r"^\p{L}[^\]({a}]{1,20}(?:\d{4}-?){2,3}$"},
    nested(MAX_DEPTH // 2 - 1, "anyOf"),
    chain(1000, holding),
]
ENDLESS: list[tuple[Any, str]] = [
    ({"$ref": "#"}, "#"),
    (defs(a=ref("a")), "#/$defs/a"),
    (defs(a=ref("b"), b=ref("a")), "#/$defs/b"),
    ({"anyOf": [{"$ref": "#/anyOf/1"}, {"$ref": "#/anyOf/0"}]}, "#/anyOf/1"),
    (defs(a=holding(ref("a"))), "#/$defs/a/properties/x"),
    (defs(a={"allOf": [{"type": "object"}, ref("a")]}), "#/$defs/a/allOf/1"),
    (defs(a=holding({"anyOf": [ref("a"), ref("a")]})), "#/$defs/a/properties/x/anyOf/1"),
    (defs(a=holding({"oneOf": [{"type": "null"}, holding(ref("b"))]}), b=holding(ref("b"))), "#/$defs/b/properties/x"),
    ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "#/items"),
    ({"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 1}, "#/prefixItems/0"),
    ({"type": "object", "additionalProperties": {"$ref": "#"}, "required": ["q"]}, "#/additionalProperties"),
    ({"type": "object", "properties": {"x": ref("b")}, "$defs": {"b": holding(ref("b"))}}, "#/$defs/b/properties/x"),
]
REFUSED: list[tuple[Any, str]] = [
    (nested(300, "anyOf"), r"^more than 120 levels of objects and lists in each other at #(/anyOf/0){60}$"),
    (nested(300, "items"), r"in each other at #(/items){120}$"),
    (nested(2000, "properties"), "more than 120 levels"),
    ({"const": json.loads("[" * 200 + "]" * 200)}, "more than 120 levels"),
    ({"x" * 9000: nested(300, "items")}, r"more than 120 levels .* at #/x+\.\.\.$"),
    ({"enum": list(range(100_001))}, "more than 100000 values"),
    (defs(a={"items": {"$ref": "https://example.org/x"}}), r"^#/\$defs/a/items: \$ref must point into this schema"),
    ({"$ref": "#name", "$defs": {"a": {"$anchor": "name", "$ref": "#name"}}}, "must point into this schema"),
    ({"$ref": 5}, "must point into this schema"),
    (defs(a={"$id": "https://example.org/a", "$ref": "#"}), r"^#/\$defs/a: \$id"),
    (defs(b={}), r"^#: \$ref points to '#/\$defs/a', and nothing is there"),
    ({"properties": {"x": {"minLength": 10_001}}}, "^#/properties/x: a text of 10001 characters"),
    ({"pattern": "^(a{1000}){1000}$"}, "1000000 characters"),
    ({"pattern": "^(?:a|(b[)]{200})){100}?$"}, "20200 characters"),
    ({"pattern": "a{ 99999 }"}, "99999 characters"),
    ({"patternProperties": {"^a{20000}$": {}}}, "20000 characters"),
    ({"const": "x" * 10_001}, "10001 characters"),
    ({"allOf": [{"multipleOf": 997}, {"multipleOf": 991}]}, "^#/allOf/1: multipleOf"),
    ({"multipleOf": 1.00003}, "^#: multipleOf"),
]  # fmt: skip


@pytest.mark.parametrize("schema", FINE)
def test_schemas_that_are_fine(schema: Any) -> None:
    check_schema(schema)


@pytest.mark.parametrize(("schema", "place"), ENDLESS)
def test_recursion_without_an_end_is_refused_by_its_place(schema: Any, place: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check_schema(schema, "here: ")
    assert str(caught.value).startswith(f"here: {place}: $ref leads to ")


@pytest.mark.parametrize(("schema", "said"), REFUSED)
def test_what_is_too_much_is_refused_by_its_place(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        check_schema(schema)


def test_a_schema_of_python_that_holds_itself_or_grows_without_end_is_refused() -> None:
    itself: dict[str, Any] = {}
    itself["items"] = itself
    shared: dict[str, Any] = {"type": "string"}
    for _ in range(50):
        shared = {"anyOf": [shared, shared]}
    for schema, said in ((itself, "more than 120 levels"), (shared, "more than 100000 values")):
        with pytest.raises(SchemaError, match=said):
            check_schema(schema)


@pytest.mark.parametrize("strict", [True, False])
def test_tools_are_refused_by_their_place(strict: bool) -> None:
    function = {
        "name": "f",
        "strict": strict,
        "parameters": {"type": "object", "properties": {"x": nested(300, "anyOf")}},
    }
    other = {"name": "g", "parameters": {}}
    tools = [{"type": "function", "function": item} for item in (other, function)]
    with pytest.raises(
        SchemaError, match=r"^tools\.1\.function\.parameters: more than 120 .* at #/properties/x(/anyOf/0)+"
    ):
        ToolRequest.from_openai(tools)


def test_only_calls_that_must_satisfy_their_schema_need_an_end() -> None:
    endless = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": endless}}]
    assert ToolRequest.from_openai(tools) is not None
    with pytest.raises(SchemaError, match=r"^tools\.0\.function\.parameters: #/properties/x: \$ref leads to '#'"):
        ToolRequest.from_openai(tools, "required")


class TestGrammars:
    """The same where grammars are compiled."""

    @pytest.fixture(scope="class")
    @staticmethod
    def grammars() -> Any:
        pytest.importorskip("llguidance", reason="llguidance is not installed")
        from transformers import AutoTokenizer

        from ewe.engine.sampling.grammar import Grammars

        tokenizer = AutoTokenizer.from_pretrained(Path(__file__).parents[2] / "ewe" / "evaluation" / "world" / "model")
        return Grammars(tokenizer, 2050, frozenset({1}))

    @pytest.mark.parametrize("schema", FINE)
    def test_what_is_fine_compiles_and_can_be_followed(self, grammars: Any, schema: Any) -> None:
        """That includes a thousand references in a row, which overflow the stack of a usual thread."""
        grammar, ids, rng = grammars.of_schema(schema), [], random.Random(1)
        for _ in range(20):
            assert grammar.follow(ids) == ""
            choices = grammar.allowed.nonzero()[0].tolist()
            if choices == [1]:
                break
            ids = [*ids, rng.choice([token for token in choices if token != 1])]

    @pytest.mark.parametrize(("schema", "place"), ENDLESS)
    def test_what_has_no_end_does_not(self, grammars: Any, schema: Any, place: str) -> None:
        with pytest.raises(SchemaError, match="without an end"):
            grammars.of_schema(schema)

    def test_what_the_grammar_cannot_begin_is_found_when_it_is_compiled(self, grammars: Any) -> None:
        counted = {"allOf": [{"type": "string", "pattern": f"^(a{{{count}}})*$"} for count in (997, 991)]}
        with pytest.raises(SchemaError, match="too many expressions") as caught:
            grammars.of_schema(counted)
        assert "\n" not in str(caught.value), "no state of the parser"
