"""True sentences said a little differently, so that their source still says them: what no verdict should turn on."""

from __future__ import annotations

import re
from collections.abc import Callable

from ewe.text.english import NUMBER_WORDS

_SYNONYMS = dict(
    pair.split("/")
    for pair in [
        "began/started",
        "started/began",
        "film/movie",
        "movie/film",
        "built/constructed",
        "constructed/built",
        "large/big",
        "located/situated",
        "situated/located",
        "received/got",
        "obtained/got",
        "bought/purchased",
        "country/nation",
        "important/significant",
        "significant/important",
        "also/additionally",
        "however/but",
        "many/numerous",
        "numerous/many",
        "often/frequently",
        "frequently/often",
        "about/approximately",
        "approximately/about",
        "nearly/almost",
        "almost/nearly",
        "killed/slain",
        "whole/entire",
        "entire/whole",
        "usually/normally",
        "typically/usually",
        "created/made",
        "famous/well-known",
        "primarily/mainly",
        "mainly/mostly",
        "mostly/mainly",
        "rapidly/quickly",
        "quickly/fast",
        "famous/renowned",
        "created/produced",
        "helped/assisted",
        "especially/particularly",
        "particularly/especially",
        "difficult/hard",
        "various/different",
        "throughout/across",
        "within/in",
        "upon/on",
        "amongst/among",
        "while/whereas",
        "although/though",
        "commonly/often",
        "establish/found",
        "established/set_up",
        "attempted/tried",
        "begun/started",
        "wrote/penned",
    ]
)
_SYNONYM = re.compile(rf"\b(?:{'|'.join(_SYNONYMS)})\b")
_SHORT = {
    "United States": "US",
    "United Kingdom": "UK",
    "percent": "%",
    "World War II": "the Second World War",
    "World War I": "the First World War",
}
_NUMERALS = {word: str(value) for word, value in NUMBER_WORDS.items() if 2 <= value <= 12}
_LEAD = re.compile(r"(?:However|Therefore|Moreover|Furthermore|In addition|For example|In fact|Also|Thus|Today), ")
_WHEN = re.compile(r"((?:In|On|By|During|After|Since) [^,.;()]{4,40}), (?=(?:the|a|an|he|she|it|they|[A-Z])\b)")
_ASIDE = re.compile(r" ?\([^()]*\)|, (?:which|who|where) [^,.;]{5,80}(?=[,.])|, [a-z]+ing [^,.;]{5,60}(?=\.)")
_ITEMS = re.compile(r"((?:[\w'’-]+ ?){1,3}), ((?:[\w'’-]+ ?){1,3}),? and ((?:[\w'’-]+ ?){1,3})(?=[.;])")


def _synonyms(sentence: str) -> str | None:
    """One or two words replaced by others of the same sense."""
    return _SYNONYM.sub(lambda match: _SYNONYMS[match[0]].replace("_", " "), sentence, count=2)


def _numerals(sentence: str) -> str | None:
    """Numbers written another way: "three" and "3", "1,200" and "1200"."""
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", sentence)
    return re.sub(rf"\b(?:{'|'.join(_NUMERALS)})\b", lambda match: _NUMERALS[match[0]], plain, count=1)


def _short_names(sentence: str) -> str | None:
    """Common short names for the long ones."""
    for long, short in _SHORT.items():
        sentence = re.sub(rf"\b{long}\b", short, sentence)
    return sentence


def _shortened(sentence: str) -> str | None:
    """Without its asides: brackets, relative clauses, participles at the end."""
    return _ASIDE.sub("", sentence)


def _moved(sentence: str) -> str | None:
    """Without the word that ties it to the sentence before, and with "In 1931," at its end."""
    match = _WHEN.match(sentence)
    if match is None:
        bare = _LEAD.sub("", sentence)
        return bare[0].upper() + bare[1:]
    rest = sentence[match.end() :].rstrip(".")
    return f"{rest[0].upper()}{rest[1:]} {match[1][0].lower()}{match[1][1:]}."


def _fewer_items(sentence: str) -> str | None:
    """One item less in a list of three or more that is not said to be complete."""
    match = _ITEMS.search(sentence)
    if match is None or re.search(r"\b(?:only|all|three|four|five|between|both)\b", sentence):
        return None
    return f"{sentence[: match.start()]}{match[1].strip()} and {match[3].strip()}{sentence[match.end() :]}"


EDITS: dict[str, Callable[[str], str | None]] = {
    "synonyms": _synonyms,
    "numerals": _numerals,
    "short names": _short_names,
    "shortened": _shortened,
    "moved": _moved,
    "fewer items": _fewer_items,
}
"""Kind of edit -> its rule, which returns None or the sentence itself where it finds nothing to edit."""


def edited(kind: str, sentence: str) -> str | None:
    """The sentence with this edit, or None where it finds nothing, or leaves too little."""
    result = EDITS[kind](sentence)
    return result if result and result != sentence and len(result.split()) >= 5 else None
