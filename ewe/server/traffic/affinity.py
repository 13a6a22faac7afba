"""What decides which memory units a request uses: requests with the same key should meet in one server.

The router chooses by this key, and a server counts by it how often whoever stands before it brought one back.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from ewe.text.conversation import question_of

FindPassage = Callable[[str], str]
"""What the best passage for a question is about; empty if there is none."""

SESSION_HEADER = "x-session-id"  # what nginx and Ray Serve go by, who do not look into bodies

_MOST_CHARACTERS = 4000  # of a question, from its end on, where it is asked
_MOST_KEYS = 1 << 16  # remembered by one server
_WORDS = re.compile(r"\w+")
_OF_A_UNIT = ("title", "text", "source", "date")  # of a document: what its unit can hold
_ELSEWHERE = ("content", "data")  # where other APIs' documents have it
_BROUGHT = ("search_result", "document")  # blocks of messages that are documents


def affinity_key(session: str, body: Any, find_passage: FindPassage | None = None) -> str:
    """The key of a request; empty where no units can be foreseen.

    session: its SESSION_HEADER, or empty. body: its JSON, whose shape nobody has checked. In this order: what the
    caller says (the header, `prompt_cache_key`); the documents that it brings; whose memories it uses; the passage that
    is found for its question; the question's words. What is under another `cache_salt` shares no units, so it has
    another key.
    """
    if session:
        return f"session {session}"
    if not isinstance(body, Mapping):
        return ""
    cache_key = body.get("prompt_cache_key")
    if isinstance(cache_key, str) and cache_key:
        return f"caller {cache_key}"
    key = _foreseen(body, find_passage)
    salt = body.get("cache_salt")
    return f"{key} salt {salt}" if key and isinstance(salt, str) and salt else key


def place_of(text: str) -> int:
    """A number that is the same in every process, evenly spread over 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest())


class SeenKeys:
    """The keys that one server has served, the last `most` of them."""

    def __init__(self, most: int = _MOST_KEYS) -> None:
        self._most = most
        self._places: OrderedDict[int, None] = OrderedDict()

    def take(self, key: str) -> bool:
        """Whether a key was here before; it is from now on."""
        place = place_of(key)
        was_here = place in self._places
        self._places[place] = None
        self._places.move_to_end(place)
        if len(self._places) > self._most:
            self._places.popitem(last=False)
        return was_here


def _foreseen(body: Mapping[str, Any], find_passage: FindPassage | None) -> str:
    documents = [*_list(body.get("documents")), *_brought(body)]
    if documents:
        # The smallest of their hashes: requests that share most of their documents mostly have the same (MinHash).
        return f"document {min(place_of(_unit_text(item)) for item in documents)}"
    memory = body.get("memory")
    if isinstance(memory, Mapping):
        return f"memory {memory.get('user') or ''} {memory.get('agent') or ''}"
    question = _question(body)[-_MOST_CHARACTERS:]
    passage = find_passage(question) if find_passage is not None and question else ""
    words = " ".join(_WORDS.findall(question.casefold()))
    return f"passage {passage}" if passage else f"question {words}" if words else ""


def _brought(body: Mapping[str, Any]) -> list[Any]:
    """Documents that stand in messages, as Anthropic's API has them."""
    messages = [item for item in _list(body.get("messages")) if isinstance(item, Mapping)]
    blocks = [block for item in messages for block in _list(item.get("content")) if isinstance(block, Mapping)]
    return [block for block in blocks if block.get("type") in _BROUGHT]


def _unit_text(document: Any) -> str:
    """What the unit of a document says, however it is sent and whatever its id is."""
    fields = document if isinstance(document, Mapping) else {"text": document}
    own = "\n".join(str(fields.get(name) or "").strip() for name in _OF_A_UNIT)
    return own + "".join(str(fields.get(name) or "") for name in _ELSEWHERE)


def _question(body: Mapping[str, Any]) -> str:
    """What retrieval is told: the user's last message, or the text to go on with or to check."""
    for name in ("messages", "input", "prompt", "text"):
        value = body.get(name)
        if isinstance(value, str):
            return value
        items = _list(value)
        if items and all(isinstance(item, Mapping) for item in items):
            return question_of([{**item, "content": _content(item.get("content"))} for item in items])
        if items and isinstance(items[0], str):
            return items[0]
    return ""


def _content(value: Any) -> str:
    """The text of a message's content in any of its shapes."""
    if isinstance(value, Mapping):
        return str(value.get("text") or "")
    return "\n".join(map(_content, value)) if isinstance(value, list) else str(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
