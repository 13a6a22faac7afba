"""What decides which memory units a request uses: requests with the same key should meet in one server."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from ewe.conversation import question_of
from ewe.router.ring import place_of

FindPassage = Callable[[str], str]
"""What the best passage for a question is about; empty if there is none."""

_MOST_CHARACTERS = 4000  # of a question, from its end on, where it is asked
_WORDS = re.compile(r"\w+")


def routing_key(body: Mapping[str, Any], find_passage: FindPassage | None = None) -> str:
    """The key of a request's JSON body, whose shape nobody has checked; empty where no units can be foreseen.

    In this order: what the caller says (`prompt_cache_key`); the documents that it brings; whose memories it uses; the
    passage that is found for its question; the question's words.
    """
    said = body.get("prompt_cache_key")
    if isinstance(said, str) and said:
        return f"caller {said}"
    texts = [_text(item) for item in _list(body.get("documents"))]
    if texts:
        # The smallest of their hashes: requests that share most of their documents mostly have the same (MinHash).
        return f"document {min(map(place_of, texts))}"
    memory = body.get("memory")
    if isinstance(memory, Mapping):
        return f"memory {memory.get('user')} {memory.get('agent')}"
    question = _question(body)[-_MOST_CHARACTERS:]
    passage = find_passage(question) if find_passage is not None and question else ""
    words = " ".join(_WORDS.findall(question.casefold()))
    return f"passage {passage}" if passage else f"question {words}" if words else ""


def _question(body: Mapping[str, Any]) -> str:
    """What retrieval is told: the user's last message, or the text to go on with or to check."""
    for name in ("messages", "input", "prompt", "text"):
        value = body.get(name)
        if isinstance(value, str):
            return value
        items = _list(value)
        if items and all(isinstance(item, Mapping) for item in items):
            return question_of([{**item, "content": _text(item.get("content"))} for item in items])
        if items and isinstance(items[0], str):
            return items[0]
    return ""


def _text(value: Any) -> str:
    """The text of a document, or of a message's content in any of its shapes."""
    if isinstance(value, Mapping):
        return f"{value.get('title') or ''}\n{value.get('text')}"
    return "\n".join(map(_text, value)) if isinstance(value, list) else str(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
