"""Texts that speak to whatever reads them instead of about something."""

import re
from collections.abc import Iterator

_EARLIER = r"(?:the\s+|all\s+|any\s+|your\s+|these\s+|of\s+|my\s+)*(?:above|previous|prior|earlier|preceding|foregoing)"
_ORDERS = r"(?:instructions?|prompts?|rules|directions|guidelines|directives)"
_VERDICTS = r"(?:supported|contradicted|refuted|inconclusive|entailment|contradiction)"
_PATTERNS = (
    rf"\b(?:ignore|disregard|forget|override|bypass)\s+{_EARLIER}\b",
    rf"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){{0,3}}{_ORDERS}\b",
    rf"\b(?:new|updated|revised|system)\s+{_ORDERS}\s*:",
    r"\byou\s+are\s+(?:now\s+)?(?:an?\s+|the\s+)?(?:ai|language\s+model|assistant|chat\s?bot|fact[\s-]?checker|judge|"
    r"verifier)\b",
    r"\b(?:answer|reply|respond|output|return|print|say|conclude)\s+(?:only\s+|always\s+|with\s+|that\s+)*[\"'“:]?\s*"
    rf"(?:(?:the|this|every|each|any)\s+(?:claim|verdict|answer)\s+is\s+)?[\"'“]?(?:verdict\b|{_VERDICTS}\b)",
    rf"\b(?:verdict|label)\s*[:=]\s*[\"'“]?{_VERDICTS}\b",
)
_ORDER = re.compile("|".join(_PATTERNS))
# How the patterns begin: in a long text, finding these words first takes a quarter of the time of searching for all.
_STARTS = (
    *("ignore", "disregard", "forget", "override", "bypass", "new", "updated", "revised", "system", "you", "answer"),
    *("reply", "respond", "output", "return", "print", "say", "conclude", "verdict", "label"),
)
_PIECE = 4000  # characters at least
_CONTROL = re.compile(r"<\|[^|<>]{1,40}\|>|\[/?(?:INST|SEP|CLS|PAD|MASK|UNK)\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>")


def addresses_the_reader(text: str) -> bool:
    """Whether the text gives orders to whoever judges by it, or names the verdict to give."""
    return any(map(_is_order, _pieces(text)))


def _is_order(piece: str) -> bool:
    folded = piece.casefold()
    if not any(word in folded for word in _STARTS):
        return False
    folded = " ".join(folded.split())  # a long run of spaces would take quadratic time
    return any(_ORDER.match(folded, place) for word in _STARTS for place in _places(folded, word))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that end with a full stop, over which no order goes: looked through at once, a book would let
    no other thread go on for some milliseconds.
    """
    begin = 0
    while begin < len(text):
        end = text.find(".", begin + _PIECE) + 1 or len(text)
        yield text[begin:end]
        begin = end


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def spells_control_tokens(text: str) -> bool:
    """Whether the text spells tokens by which chat templates and encoders tell their parts apart."""
    return _CONTROL.search(text) is not None


def without_control_tokens(text: str) -> str:
    """The text with a space in the place of every control token that it spells."""
    return _CONTROL.sub(" ", text)
