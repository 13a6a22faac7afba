"""JSON schemas of requests: what has no end or would hold up the compiler of grammars is refused, with its place."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from ewe.errors import SchemaError

GRAMMAR_FAILED = "the grammar of the JSON schema: "
"""How the error of an answer begins whose schema turned out to be too much for its grammar."""

# As chat templates write JSON; free white space would let a model that has nothing to say write blanks up to its limit.
WRITTEN_FORM = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""How llguidance has models write JSON."""

MAX_DEPTH = 120  # levels of objects and lists: the compiler reads 127, and templates write schemas by recursion
_MOST_VALUES = 100_000
_LONGEST_POINTER = 1500  # characters of it in a message
_LONGEST_TEXT = 10_000  # characters that a schema may demand: they are looked through for every token
_LARGEST_MULTIPLE = 10_000  # the compiler makes a state of every remainder

_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPPINGS = ("properties", "patternProperties")
_SINGLE = ("additionalProperties", "items")
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:[:=!]|P?<\w+>|[A-Za-z-]+:?)|\{\s*(\d{1,20})\s*(?:,\s*\d*\s*)?\}|.",
    re.DOTALL,
)

Path = tuple[str | int, ...]


def check_depth(value: Any, where: str) -> None:
    """Raises SchemaError, which begins with `where`, for a schema nested deeper than MAX_DEPTH, or of endless size."""
    waiting: list[tuple[Any, Path]] = [(value, ())]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        held, path = waiting.pop()
        if not isinstance(held, Mapping | list | tuple):
            continue
        if len(path) >= MAX_DEPTH:
            raise SchemaError(
                f"{where}more than {MAX_DEPTH} levels of objects and lists in each other at {_pointer(path)}"
            )
        items = held.items() if isinstance(held, Mapping) else enumerate(held)
        waiting += [(item, (*path, key)) for key, item in items]
    raise SchemaError(f"{where}the JSON schema holds more than {_MOST_VALUES} values")


def check_schema(schema: Mapping[str, Any], where: str = "") -> None:
    """Raises SchemaError, which begins with `where` and names the place by its JSON pointer.

    Refused are schemas that are nested too deep, refer to something outside themselves, refer back to themselves so
    that no value has an end, or ask for texts or multiples that are too large. Recursion that can end is fine.
    """
    check_depth(schema, where)
    _Walk(schema, where).check()


@dataclass(eq=False)
class _Node:
    """A schema that the root reaches. users: those that have it as a part; target: what its $ref points to."""

    schema: Mapping[str, Any]
    path: Path
    users: list[_Node] = field(default_factory=list)
    target: Any = None
    ends: bool = False


class _Walk:
    """All schemas that one schema reaches through its keywords and references."""

    def __init__(self, root: Mapping[str, Any], where: str) -> None:
        self._root = root
        self._where = where
        self._nodes: dict[int, _Node] = {}
        self._multiple = 1

    def check(self) -> None:
        """Raises SchemaError for the first thing that is wrong."""
        waiting: deque[tuple[Any, Path, _Node | None]] = deque([(self._root, (), None)])
        while waiting:
            schema, path, user = waiting.popleft()
            if not isinstance(schema, Mapping):
                continue
            known = self._nodes.get(id(schema))
            node = known or self._nodes.setdefault(id(schema), _Node(schema, path))
            if user is not None:
                node.users.append(user)
            if known is None:
                self._check_size(node)
                waiting += [(part, where, node) for part, where in self._parts(node)]
        self._check_ends()

    def _parts(self, node: _Node) -> Iterator[tuple[Any, Path]]:
        schema, path = node.schema, node.path
        if "$ref" in schema:
            node.target, referenced = self._resolve(schema["$ref"], node)
            yield node.target, referenced
        for key in _SINGLE:
            yield schema.get(key), (*path, key)
        for key in _LISTS:
            if isinstance(schema.get(key), list | tuple):
                yield from ((part, (*path, key, place)) for place, part in enumerate(schema[key]))
        for key in _MAPPINGS:
            if isinstance(schema.get(key), Mapping):
                yield from ((part, (*path, key, name)) for name, part in schema[key].items())

    def _resolve(self, reference: Any, node: _Node) -> tuple[Any, Path]:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise self._error(
                node, f"$ref must point into this schema, as '#/$defs/name' does, and not to {reference!r}"
            )
        path = [unquote(part).replace("~1", "/").replace("~0", "~") for part in reference.split("/")[1:]]
        value: Any = self._root
        for part in path:
            if isinstance(value, Mapping) and part in value:
                value = value[part]
            elif isinstance(value, list | tuple) and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            else:
                raise self._error(node, f"$ref points to {reference!r}, and nothing is there")
        return value, tuple(path)

    def _check_size(self, node: _Node) -> None:
        schema = node.schema
        if node.path and isinstance(schema.get("$id"), str):
            raise self._error(node, "$id: a schema within another has none here, so that every $ref points into one")
        least, patterns, multiple = schema.get("minLength"), schema.get("patternProperties"), schema.get("multipleOf")
        demanded = [least] if isinstance(least, int) else []
        demanded += [len(text) for text in (schema.get("const"), *_listed(schema.get("enum"))) if isinstance(text, str)]
        names = patterns if isinstance(patterns, Mapping) else ()
        demanded += [_least_length(text) for text in (schema.get("pattern"), *names) if isinstance(text, str)]
        if max(demanded, default=0) > _LONGEST_TEXT:
            raise self._error(
                node,
                f"a text of {max(demanded)} characters is demanded, or must be compared; {_LONGEST_TEXT} are the most",
            )
        if isinstance(multiple, int | float) and math.isfinite(multiple) and multiple > 0:
            digits = Decimal(str(multiple)).normalize().as_tuple().digits
            self._multiple = math.lcm(self._multiple, int("".join(map(str, digits))))
        if self._multiple > _LARGEST_MULTIPLE:
            raise self._error(node, f"multipleOf: no common multiple over {_LARGEST_MULTIPLE} may be asked for")

    def _check_ends(self) -> None:
        """Raises SchemaError if a schema demands itself, directly or through others, so that no value is finite."""
        waiting = list(self._nodes.values())
        while waiting:
            node = waiting.pop()
            if not node.ends and self._has_end(node):
                node.ends = True
                waiting += node.users
        endless = [node for node in self._nodes.values() if not node.ends and node.target is not None]
        if endless:
            node = endless[-1]
            raise self._error(
                node,
                f"$ref leads to {node.schema['$ref']!r} and so back here without an end: let a property be left out, "
                "a list be empty, or give an alternative",
            )

    def _ends(self, part: Any) -> bool:
        return not isinstance(part, Mapping) or self._nodes[id(part)].ends

    def _has_end(self, node: _Node) -> bool:
        """Whether some finite value may satisfy it, by what is known of its parts; true of all but recursion."""
        schema = node.schema
        if not all(map(self._ends, (node.target, *_listed(schema.get("allOf"))))):
            return False
        choices = [_listed(schema.get(key)) for key in ("anyOf", "oneOf")]
        if not all(any(map(self._ends, options)) for options in choices if options):
            return False
        kinds = _listed(schema.get("type")) or (schema.get("type"),)
        return any(all(map(self._ends, _demanded(schema, kind))) for kind in kinds)

    def _error(self, node: _Node, problem: str) -> SchemaError:
        return SchemaError(f"{self._where}{_pointer(node.path)}: {problem}")


def _demanded(schema: Mapping[str, Any], kind: Any) -> list[Any]:
    """The parts that every value of a type must hold."""
    if kind == "object":
        properties = schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        others = None if schema.get("patternProperties") else schema.get("additionalProperties")
        return [known.get(name, others) for name in _listed(schema.get("required")) if isinstance(name, str)]
    if kind == "array":
        least, items = schema.get("minItems"), schema.get("items")
        first = _listed(schema.get("prefixItems")) or _listed(items)
        count = least if isinstance(least, int) else 0
        return [*first[:count], *([items] if count > len(first) else [])]
    return []


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else ()


def _least_length(pattern: str) -> int:
    """About how many characters a match of a pattern has at least; of alternatives all count."""
    groups, last, is_repeated = [0], 0, False
    for match in _PIECE.finditer(pattern):
        piece = match.group()
        repeats = int(match[1]) if match[1] else 1 if piece == "+" else 0 if piece in ("*", "?") else None
        if repeats is not None:
            if match[1] or not is_repeated:  # a further mark says how greedy the first is
                groups[-1] += last * (repeats - 1)
                last *= repeats
            is_repeated = True
            continue
        is_repeated = False
        if piece[0] == "(":
            groups.append(0)
        elif piece == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif piece not in ("|", "^", "$"):
            last = 1
            groups[-1] += 1
    return sum(groups)


def _pointer(path: Path) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    pointer = "".join(f"/{part}" for part in ("#", *parts))[1:]
    return pointer if len(pointer) <= _LONGEST_POINTER else f"{pointer[:_LONGEST_POINTER]}..."
