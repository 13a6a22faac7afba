"""What every format of tool calls has: where calls begin in a text, how one is read, and a grammar that forces them.

A further format is a further class.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ewe.text.json_schema import WRITTEN_FORM
from ewe.text.tool_calls.json_reader import MalformedError, read_json, write_json
from ewe.text.tool_calls.tools import Tool, ToolRequest

_BLANKS = re.compile(r"\s*")


class Place(Enum):
    """What has been read before the text in question: nothing, some content, or a call."""

    START = auto()
    CONTENT = auto()
    CALL = auto()


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call as a model wrote it; arguments: a JSON object."""

    name: str
    arguments: str


class CallFormat(ABC):
    """How models of one kind write tool calls.

    markers: what begins calls, wherever it stands; opening: what the first call of a forced answer begins with.
    tokens: texts that a tokenizer may have single tokens for, which must stay in the text. arguments_key: how the
    arguments are called in a call's object.
    """

    name: str
    markers: tuple[str, ...]
    opening: str
    tokens: tuple[str, ...]
    arguments_key = "arguments"

    def find(self, text: str, place: Place) -> tuple[int, int] | None:
        """Where the first call begins and where its marker ends; None without a whole marker."""
        places = [(text.find(marker), marker) for marker in self.markers]
        begin, marker = min(((at, marker) for at, marker in places if at >= 0), default=(-1, ""))
        return None if begin < 0 else (begin, begin + len(marker))

    def held_back(self, text: str, place: Place) -> int:
        """How many characters at the end of a text without a marker could begin one."""
        return begun_length(text, self.markers)

    @abstractmethod
    def read(self, text: str, begin: int, names: frozenset[str], is_whole: bool) -> tuple[list[FunctionCall], int]:
        """The calls after a marker that ends at `begin`, and where they end.

        names: of the tools. is_whole: whether the text has ended. Raises NeedsMoreError or MalformedError.
        """

    @abstractmethod
    def grammar_rules(self, request: ToolRequest, token_ids: Mapping[str, int]) -> tuple[str, str, str]:
        """Lark: what follows the marker of the first call, what may be repeated after that, and the rules they need."""

    def grammar(self, request: ToolRequest, token_ids: Mapping[str, int], answer: Mapping[str, Any] | None) -> str:
        """A text in Lark's form as llguidance reads it: calls, or, unless one must be made, an answer.

        token_ids: those of `tokens` that are single tokens. answer: the JSON schema of the answer, if it has one.
        """
        first, more, rules = self.grammar_rules(request, token_ids)
        first += f" ({more})*" if more and request.may_repeat else ""
        calls = f"{in_lark(self.opening, token_ids)} {first}"
        if request.must_call:
            return f"start: {calls}\n{rules}"
        if answer is not None:
            # A call without a marker could not be told from an answer that is an object too.
            marked = f"{in_lark(self.opening or self.markers[0], token_ids)} {first}"
            return f"start: {marked} | answer\nanswer: {json_in_lark(answer)}\n{rules}"
        return f"{self.free_start(first, token_ids)}\n{rules}"

    def free_start(self, first: str, token_ids: Mapping[str, int]) -> str:
        """Free text, which the first marker ends; the marker counts whether it is a token or spelled."""
        marker = self.opening
        spelled = f"TEXT: /(.|\\n)*/\nspelled[lazy]: TEXT {_quoted(marker)}\n"
        token = f"TEXT {in_lark(marker, token_ids)} | " if marker in token_ids else ""
        return f"start: TEXT | head {first}\nhead: {token}spelled\n{spelled}"


def begun_length(text: str, markers: Sequence[str]) -> int:
    """The length of the longest end of a text with which a longer marker begins."""
    sizes = ((marker, size) for marker in markers for size in range(1, min(len(marker), len(text) + 1)))
    return max((size for marker, size in sizes if text.endswith(marker[:size])), default=0)


def in_lark(text: str, token_ids: Mapping[str, int]) -> str:
    """A text in Lark: the token that stands for it, or its characters; nothing for no text."""
    if text in token_ids:
        return f"<[{token_ids[text]}]>"
    return _quoted(text) if text else ""


def json_in_lark(schema: Mapping[str, Any]) -> str:
    """JSON of a schema in Lark."""
    return f"%json {json.dumps({**schema, 'x-guidance': WRITTEN_FORM})}"


def arguments_rules(request: ToolRequest) -> list[tuple[Tool, str, str]]:
    """Per tool that may be called: the name of the rule for its arguments, and the rule."""
    numbered = ((f"arguments_{place}", tool) for place, tool in enumerate(request.callable))
    return [(tool, name, f"{name}: {json_in_lark(request.schema_of(tool))}\n") for name, tool in numbered]


def object_rules(request: ToolRequest, key: str) -> str:
    """The rule `call`: an object with the name of a tool and, under `key`, its arguments."""
    rules, options = "", []
    for tool, name, rule in arguments_rules(request):
        head = _quoted(f'{{"name": {json.dumps(tool.name)}, "{key}": ')
        options.append(f'{head} {name} "}}"')
        rules += rule
    return f"call: {' | '.join(options)}\n{rules}"


def skip_blanks(text: str, position: int) -> int:
    """The first code point from `position` on that is no white space."""
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def read_object(text: str, begin: int) -> tuple[FunctionCall, int]:
    """A call that is an object with a name and arguments; raises NeedsMoreError or MalformedError."""
    value, end = read_json(text, skip_blanks(text, begin))
    return call_of(value), end


def call_of(value: Any) -> FunctionCall:
    """The call that an object stands for; raises MalformedError for one that stands for none.

    Models mix up the key of the arguments, and write them as a string now and then.
    """
    if not isinstance(value, dict):
        raise MalformedError
    name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise MalformedError from error
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        raise MalformedError
    return FunctionCall(name, write_json(arguments))


def _quoted(text: str) -> str:
    return json.dumps(text)
