"""Edits of a sentence, each with what the sentence before says of the sentence after.

Rules are general: no list of facts, no set's own sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

from judge_training.numbers import other_number, reformat_number
from judge_training.swaps import Value, find_values, negate, other_value, replace_value
from judge_training.wordings import RELATIONS, STRONGER, SYNONYMS, VERBS

Edit = Callable[[Random, str, Sequence[str], Sequence[str]], str | None]
"""(rng, sentence, texts around it, names) -> the edited sentence, or None where the rule does not apply."""

_SYMMETRIC = re.compile(r"\b(?:between|married|met|with|versus|against|vs|border\w*|both|or|and)\b|^[\s,;&/()-]*$")
_PAST_VERB = re.compile(rf"(?<=[\w)] )(?:{'|'.join(VERBS)})(?= [a-z0-9A-Z])")
_PAST_BEFORE = re.compile(r"\b(?:is|was|are|were|be|been|being|has|have|had|to|not|the|a|an|of|by|and|or|,) $")
_SYNONYM = re.compile(rf"\b(?:{'|'.join(SYNONYMS)})\b")
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_OPENER = re.compile(r"^(?:However|Moreover|In addition|Additionally|Furthermore|For example|For instance|Also|Thus|"
                     r"Therefore|As a result|Indeed|In fact|Finally|Meanwhile|Nevertheless|Nonetheless), ")  # fmt: skip
_WHEN_FIRST = re.compile(r"^((?:In|On|By|During|Since|At) [^,;]{3,30}), ([^.]+)\.?$")
_ITEM = re.compile(r", \w[\w'’-]*(?: \w[\w'’-]*){0,3}(?=(,?) (?:and|or) \w)")


def wrong_number(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Another number, year or date."""
    change = other_number(rng, sentence, around)
    return change.apply(sentence) if change else None


def wrong_name(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Another name than the one that stands there, which is not the one that leads the sentence."""
    values = [value for value in predicate_values(sentence) if value.kind == "name"]
    own = [value.text for text in around for value in find_values(text) if value.kind == "name"]
    return _replaced(rng, sentence, values, own if own and rng.random() < 0.5 else names)


def wrong_word(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """A word that excludes the one that stands there: another country, profession, month, or the opposite."""
    values = [value for value in predicate_values(sentence) if value.kind not in ("name", "year", "amount")]
    return _replaced(rng, sentence, values, names)


def swapped_roles(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Two names in each other's place, where something other than "and" or "with" stands between them."""
    found = [value for value in find_values(sentence) if value.kind == "name" and surely_a_name(value)]
    pairs = [
        (one, other)
        for one, other in pairwise(found)
        if not _SYMMETRIC.search(sentence[one.end : other.start]) and one.text != other.text
    ]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    between = sentence[one.end : other.start]
    return sentence[: one.start] + other.text + between + one.text + sentence[other.end :]


def negated(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Denied: "not" after an auxiliary, "did not" or "never" before another verb; or a denial taken away."""
    verb = next((m for m in _PAST_VERB.finditer(sentence) if not _PAST_BEFORE.search(sentence[: m.start()])), None)
    if verb is None or rng.random() < 0.4:
        denied = negate(sentence)
        if denied is not None:
            return denied.replace(" not ", " never ", 1) if rng.random() < 0.3 else denied
    if verb is None:
        return None
    base = VERBS[verb[0]]
    auxiliary = "does not" if verb[0].endswith("s") else "did not"
    words = rng.choice((f"{auxiliary} {base}", f"{auxiliary} {base}", f"never {verb[0]}"))
    return sentence[: verb.start()] + words + sentence[verb.end() :]


def stronger(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """A quantity, frequency or direction said otherwise: "all" for "some", "never" for "rarely", "from" for "to"."""
    return _reworded(rng, sentence, STRONGER)


def wrong_relation(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """The same names in another relation, of which the sentence says nothing: "lived in" for "born in"."""
    return _reworded(rng, sentence, RELATIONS)


def reformatted(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Dates and numbers written another way."""
    return reformat_number(rng, sentence)


def synonyms(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Some words for others of the same meaning."""
    changed = _SYNONYM.sub(lambda m: SYNONYMS[m[0]].replace("-", " ") if rng.random() < 0.7 else m[0], sentence)
    return changed if changed != sentence else None


def when_last(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """ "In 1990, it closed." as "It closed in 1990." """
    match = _WHEN_FIRST.match(sentence)
    if not match or match[2].startswith(("and ", "or ", "but ")):
        return None
    return f"{match[2][0].upper()}{match[2][1:]} {match[1][0].lower()}{match[1][1:]}."


def without_opener(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """Without a leading "However," or what stands in brackets."""
    changed = _OPENER.sub("", sentence)
    changed = _BRACKETS.sub("", changed) if rng.random() < 0.7 else changed
    return changed[0].upper() + changed[1:] if changed and changed != sentence else None


def shorter_list(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """One item less in an enumeration: what is left is still true."""
    found = list(_ITEM.finditer(sentence))
    if not found:
        return None
    match = rng.choice(found)
    rest = sentence[match.end() :].removeprefix(match[1])
    return sentence[: match.start()] + rest


EDITS: dict[str, tuple[Edit, float]] = {
    "number": (wrong_number, 3.0),
    "name": (wrong_name, 3.0),
    "word": (wrong_word, 2.0),
    "roles": (swapped_roles, 1.5),
    "negation": (negated, 3.0),
    "quantity": (stronger, 1.2),
}
"""What makes a sentence false, with its weight in a draw."""

REWORDINGS: dict[str, Edit] = {"number": reformatted, "synonyms": synonyms, "order": when_last}
"""What leaves a sentence as true as it was, both ways."""

CUTS: dict[str, Edit] = {"opener": without_opener, "list": shorter_list}
"""What leaves a sentence true and says less: the whole does not follow from the rest."""


def falsified(rng: Random, sentence: str, around: Sequence[str], names: Sequence[str]) -> str | None:
    """The sentence after one of EDITS; None if none of those drawn applies."""
    kinds = list(EDITS)
    weights = [EDITS[kind][1] for kind in kinds]
    for kind in dict.fromkeys(rng.choices(kinds, weights, k=6)):
        changed = EDITS[kind][0](rng, sentence, around, names)
        if changed is not None and changed != sentence:
            return changed
    return None


def predicate_values(sentence: str) -> list[Value]:
    """The sentence's values without a name that it begins with."""
    values = find_values(sentence)
    return values[1:] if values and values[0].kind == "name" and values[0].start <= 4 else values


def surely_a_name(value: Value) -> bool:
    """Whether a name has two words or stands inside its sentence: the first word of a sentence is always upper case."""
    return value.start > 1 or " " in value.text


def _replaced(rng: Random, sentence: str, values: Sequence[Value], names: Sequence[str]) -> str | None:
    if not values:
        return None
    value = rng.choice(values)
    other = other_value(rng, value, sentence, names)
    return replace_value(sentence, value.text, other) if other is not None else None


def _reworded(rng: Random, sentence: str, words: Sequence[tuple[str, str]]) -> str | None:
    """One of the phrases on the left, where it stands, replaced by its counterpart; rarer ones first."""
    fitting = [pair for pair in words if re.search(rf"(?<![\w-]){pair[0]}(?![\w-])", sentence)]
    if not fitting:
        return None
    rare = [pair for pair in fitting if pair[0] not in ("with", "also", "after", "before")]
    old, new = rng.choice(rare or fitting)
    return re.sub(rf"(?<![\w-]){old}(?![\w-])", new, sentence, count=1)
