"""Whether a request asks for what there is to say of a subject, or for one thing about it; and how long it may be."""

from __future__ import annotations

import re

from ewe.text.search_text import subject_of

_IS = r"(?:'s|’s|\s+(?:is|was|are|were))\s+"
_WORD = r"[\w.&’-]+"
_NAME = rf"(?:the\s+)?[\"“]?[A-Z]{_WORD}?"
# Up to six further words, none of which asks for one thing: "What was Fécamp the center of?", "Who is Ada married to?".
_ONE_THING = r"(?:and|or|born|from|in|at|by|for|with|within|between|that|to|than|about|do|\w+ed)\b|of\s*\?"
_REST = rf"(?:\s+(?!{_ONE_THING})[\"“]?{_WORD}[\"”]?){{0,6}}?"
_MORE = r"\s*(?:\?.*|\.?|,\s.*|,?\s+(?:and|or)\s+(?:what|why|how|who|where|when)\b.*)\Z"
_FORMS = (
    # "Who was Ada Lind, and what is she known for?", "What is the Zrinski Battalion?"
    rf"(?i:who|what){_IS}{_NAME}{_REST}{_MORE}",
    # "What are oxaziridines?", "What is a lobster?"
    rf"(?i:what){_IS}(?:an?\s+)?(?!(?:the|my|your|his|her|its|their|our|this|that|wrong|going|up)\b)[a-z]{_WORD}"
    rf"(?:\s+(?!of\b|{_ONE_THING}){_WORD}){{0,2}}{_MORE}",
    # "Describe Shackleton, the crater on the Moon."
    rf"(?i:(?:please\s+)?(?:describe|summari[sz]e|explain)\s+(?:(?:what|who)\s+)?){_NAME}{_REST}{_MORE}",
    # "What is the early history of Meridian?"
    rf"(?i:what{_IS}(?:the|his|her|its|their)\s+(?:\w+\s+){{0,2}}"
    r"(?:story|history|plot|background|biography|life|career|legacy)\s+(?:of|behind)\s.*)",
)
_OVERVIEWS = re.compile("|".join(f"(?:{form})" for form in _FORMS), re.DOTALL)
_ROLE = re.compile(r"(?i:who|what)(?:'s|’s|\s+\w+)\s+the\s+\w+\s+of\b")
_LENGTH_ASKED = re.compile(r"\b(?:sentences?|words?|lines?|brief(?:ly)?|tl;?dr|one-liner)\b", re.IGNORECASE)


def asks_for_all(request: str) -> bool:
    """Whether a request asks for what there is to say of a subject, not for one thing.

    "Tell me about ...", "Who was Ada Lind?", "What are oxaziridines?", "What is the early history of ...?".
    """
    last = request.strip().rpartition("\n")[2]
    if subject_of(request) != request:
        return True
    return not _has_possessive(last) and not _ROLE.match(last) and _OVERVIEWS.match(last) is not None


def _has_possessive(request: str) -> bool:
    """Whether it asks for one thing that is somebody's ("What was Ada's first book?"); in "What's" the 's is a verb."""
    return "'s " in request[len("What's") :]


def asks_for_length(request: str) -> bool:
    """Whether a request says how long the answer is to be, like "in one sentence" or "briefly"."""
    return _LENGTH_ASKED.search(request) is not None
