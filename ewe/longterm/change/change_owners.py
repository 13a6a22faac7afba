"""Of whom a clause speaks: its speaker, a person of his, or people by their names."""

import re
from collections.abc import Iterator

from ewe.longterm.change.change_words import FILLERS, PEOPLE, RELATIVES, SINGLE, normal
from ewe.text.english import words_of
from ewe.text.words import fold

SPEAKER = "i"
"""The owner of what its own speaker says of himself; "the user" is the same."""
TOKEN = re.compile(r"[^\W_][\w.'-]*[^\W_]|[^\W_]|The_user(?:'s)?")
_NO_SUBJECT = words_of(
    "no any some every each is are was were am has have had the a an this that it they he she does did can gets goes"
)
_IN_FRONT = words_of("in at to from with of on for by near into about as like called named")
_ADJECTIVES = words_of("new old little big older younger elder eldest youngest twin best other favourite late dear")


def owners_of(part: str, speaker: str) -> frozenset[str]:
    """The first whom a clause names: the speaker, a person of his, or people by their names before the verb."""
    tokens = TOKEN.findall(part)
    for place, token in enumerate(tokens):
        low = bare(fold(token))
        if low in ("i", "we", "me", "us", "the_user") and not (token.endswith("'s") and low != "the_user"):
            return frozenset({speaker})
        if low in ("my", "our", "the_user"):
            return _with_others(_possessed(tokens[place + 1 :], speaker), tokens[place + 1 :], speaker)
        if low in RELATIVES:
            return frozenset({f"{speaker}/{normal(low)}"})
        if token[0].isupper() and low not in FILLERS and (_may_begin(tokens[:place]) if place else _is_name(tokens)):
            return frozenset(_named(tokens[place:]))
    return frozenset()


def _may_begin(before: list[str]) -> bool:
    """Whether a name behind these words can be the subject, or an owner: no verb and no article has come."""
    words = [fold(word) for word in before]
    if not _NO_SUBJECT.isdisjoint(words) or words[-1] in _IN_FRONT:
        return False
    return not any(word.endswith(("ed", "ing")) for word in words)


def _possessed(tokens: list[str], owner: str) -> frozenset[str]:
    """The owner, or the person of theirs who is named next: "my older sister Ann's"."""
    for token in tokens[:3]:
        low = bare(fold(token))
        if low in PEOPLE:
            return frozenset({f"{owner}/{normal(low)}"})
        if low not in _ADJECTIVES:
            break
    return frozenset({owner})


def _with_others(found: frozenset[str], tokens: list[str], speaker: str) -> frozenset[str]:
    """ "My brother and I": both."""
    return found | {speaker} if "and I" in " ".join(tokens[:5]) else found


def _named(tokens: list[str]) -> Iterator[str]:
    """Names that stand together: "Tobias and Fay"; and whose person: "Nils's boss"."""
    first = fold(tokens[0])
    if first.endswith(("'s", "s'")):
        yield from _possessed(tokens[1:], bare(first))
        return
    yield first
    if len(tokens) > 2 and tokens[1] == "and" and tokens[2][0].isupper():
        yield SPEAKER if tokens[2] == "I" else bare(fold(tokens[2]))


def _is_name(tokens: list[str]) -> bool:
    """Whether a clause's first word, which begins with a capital anyway, reads like a name."""
    first, second = fold(tokens[0]), fold(tokens[1]) if len(tokens) > 1 else ""
    if first.endswith("'s") and len(tokens) == 1:
        return True
    if first in PEOPLE | SINGLE or first.endswith(("ed", "ing")) or "-" in first:
        return False
    return second != "" and (tokens[1][0].isupper() or second not in ("of", "for", "at", "on", "in", "to", "my", "our"))


def bare(token: str) -> str:
    """A token without its possessive ending."""
    return token.removesuffix("'s").rstrip("'")
