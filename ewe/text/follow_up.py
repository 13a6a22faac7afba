"""Requests that follow up on earlier ones, like "When was she born?": what they are about was said before."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ewe.text.english import FUNCTION_WORDS, words_of
from ewe.text.search_text import is_small_talk, subject_of

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_BACK = words_of("it its he him his she her hers they them their theirs there it's he's she's they're")
_NO_REFERENT = re.compile(
    r"\bit(?:['’]s|\s+is|\s+was)?\s+(?:true|possible|known|clear|likely|certain)\b|"
    r"\b(?:is|was)\s+it\s+(?:true|possible|known|likely|that)\b|\b(?:is|are|was|were)\s+there\b|\bthere\s+(?:is|are|was|were)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:and|but|so|what\s+about|how\s+about|what\s+else|anything\s+else)\b", re.IGNORECASE)
_FEW_WORDS = 6
_MOST_TURNS = 20  # That are looked back through.
_MOST_CHARACTERS = 200  # Of a topic.
_MOST_READ = 1000  # Characters of a request: who writes more names what it is about. Texts may be megabytes long.


def refers_back(request: str) -> bool:
    """Whether a request cannot be understood without what was said before, like "When was she born?".

    One that names something before its first pronoun stands alone: "Where did Marie Curie meet her husband?".
    """
    if len(request) > _MOST_READ:
        return False
    subject = subject_of(request)
    tokens = _WORD.findall(_NO_REFERENT.sub(" ", subject))
    if subject != request and tokens[:1] and tokens[0].lower() not in FUNCTION_WORDS:
        return False  # "Tell me about Tikal and its water": what it is about is said at once
    name = next(
        (place for place, word in enumerate(tokens) if place and word[0].isupper() and word != "I"), len(tokens)
    )
    pronoun = next((place for place, word in enumerate(tokens) if word.lower() in _BACK), len(tokens))
    if pronoun < len(tokens):
        return pronoun < name
    if name < len(tokens) or not tokens:
        return False
    is_bare = all(word.lower() in FUNCTION_WORDS for word in tokens)
    return is_bare or (len(tokens) <= _FEW_WORDS and _GOES_ON.match(request.strip()) is not None)


def topic_of_questions(questions: Sequence[str]) -> str:
    """What the last of a user's questions is about if it refers back: the subject of the latest that stands alone.

    Empty if the last one stands alone, or none does; at most 200 characters.
    """
    if not questions or not refers_back(questions[-1]):
        return ""
    earlier = (text[:_MOST_READ] for text in reversed(questions[-1 - _MOST_TURNS : -1]))
    alone = (text for text in earlier if not refers_back(text) and not is_small_talk(text))
    return subject_of(next(alone, "")).strip()[:_MOST_CHARACTERS]
