"""The patterns of `attributes.yaml`: how people speak of attributes."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ewe.longterm.change.change_words import PEOPLE


@dataclass(frozen=True, slots=True)
class Pattern:
    """How one attribute is spoken of; the fields are those of an entry of the file."""

    attribute: str
    text: re.Pattern[str]
    holds: bool = True
    sure: bool = True
    value: str = ""
    event: bool = False
    anybody: bool = False


@cache
def attribute_patterns() -> tuple[Pattern, ...]:
    """All entries, in order."""
    return tuple(
        Pattern(entry["attribute"], _compiled(entry["said"]), **{key: entry[key] for key in entry.keys() & _MORE})
        for entry in _file()["entries"]
    )


@cache
def bond_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """How people say that somebody is single, together with somebody, engaged, married or apart."""
    return tuple((status, _compiled(said)) for status, said in _file()["bonds"].items())


_MORE = frozenset({"holds", "sure", "value", "event", "anybody"})


@cache
def _file() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "attributes.yaml").read_text(encoding="utf-8"))
    return document


@cache
def _words() -> dict[str, str]:
    words = {"people": "|".join(sorted(PEOPLE))}
    for name, text in _file()["words"].items():
        words[name] = _filled(text, words)
    return words


def _compiled(said: list[str]) -> re.Pattern[str]:
    return re.compile(_filled("|".join(said), _words()), re.IGNORECASE)


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub("%([a-z_]+)%", lambda found: words[found[1]], text)
