"""A sentence as a row of items: values (pronouns replaced by what they mean), relation words, small words, marks.

Owns: what each word of a sentence does. Knows tokens, values, discourse and the word lists; no clauses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ewe.verification.discourse import Discourse
from ewe.verification.extract import Mention, find_mentions
from ewe.verification.lexicon import (
    AUXILIARIES,
    DETERMINERS,
    FUNCTION_WORDS,
    KIND_OF_NOUN,
    NEGATIONS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIONS,
    TIME_NOUNS,
    NameKind,
    is_irregular_past,
    stem,
    words_of,
)
from ewe.verification.tokens import Token, tokenize
from ewe.verification.values import Name, Value

_RELATIVES = words_of("who which whom whose where when while whereas although though because that")
_CONJUNCTIONS = words_of("and but or")
_ORIGIN = re.compile(r"(?:ish|ese|ian|ean|ican|rman|nch|tch|iss|reek|lsh|aeli|aqi|stani)$")
_HAVE = stem("have")
_POSSESSIVES = words_of("his her hers its their theirs")


class ItemKind(StrEnum):
    """What an item does in its sentence."""

    VALUE = "value"
    RELATION = "relation"
    COPULA = "copula"
    AUXILIARY = "auxiliary"
    PREPOSITION = "preposition"
    DETERMINER = "determiner"
    CONJUNCTION = "conjunction"
    RELATIVE = "relative"
    NEGATION = "negation"
    MARK = "mark"
    TIME = "time noun"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Item:
    """One item; start and end are code points of the sentence.

    explicit: False for a value that a pronoun or "the prize" stands for. owner: the value possesses what follows.
    modifier: the value only describes the noun after it ("a Polish botanist"). relations: what a word speaks of.
    """

    kind: ItemKind
    norm: str
    stem: str
    start: int
    end: int
    value: Value | None = None
    explicit: bool = True
    owner: bool = False
    modifier: bool = False
    relations: frozenset[str] = frozenset()

    @property
    def name(self) -> Name | None:
        """The value, if it is a name."""
        return self.value if isinstance(self.value, Name) else None


def read_items(sentence: str, discourse: Discourse) -> list[Item]:
    """The items of a sentence in order; names are noticed in `discourse` as they are met."""
    discourse.begin_sentence()
    tokens = tokenize(sentence)
    mentions = {mention.first: mention for mention in find_mentions(sentence, tokens)}
    items: list[Item] = []
    index = 0
    while index < len(tokens):
        mention = mentions.get(index)
        if mention is not None:
            items.append(_mentioned(sentence, tokens, mention, items, discourse))
            index = mention.last
            continue
        if tokens[index].norm == "that" and _is_that_of(tokens, index, items):
            index += 2
            continue
        item, used = _definite(tokens, index, mentions, discourse)
        items.append(item or _word(tokens, index, items, discourse))
        index += used
    return _settled(items)


def _settled(items: list[Item]) -> list[Item]:
    """Items whose part in the sentence shows only with what follows them: modifiers, and nouns of a complement."""
    settled: list[Item] = []
    complement = False
    for index, item in enumerate(items):
        behind = items[index + 1] if index + 1 < len(items) else None
        ahead = items[index - 1] if index else None
        if item.kind is ItemKind.DETERMINER:
            complement = _opens_complement(item, settled)
        elif item.kind not in (ItemKind.WORD, ItemKind.RELATION, ItemKind.CONJUNCTION, ItemKind.VALUE):
            complement = False
        if complement and item.kind is ItemKind.RELATION and not _governs(items[index + 1 : index + 3]):
            item = replace(item, kind=ItemKind.WORD, relations=frozenset())
        elif item.name is not None and item.explicit and ahead is not None and behind is not None:
            indefinite = ahead.norm in ("a", "an") and behind.kind in (ItemKind.WORD, ItemKind.RELATION)
            described = ahead.kind in (ItemKind.DETERMINER, ItemKind.WORD) and behind.kind is ItemKind.WORD
            plain = behind.norm not in FUNCTION_WORDS and not item.owner
            item = replace(item, modifier=(indefinite or described) and plain)
        elif item.kind is ItemKind.AUXILIARY and item.stem == _HAVE and _is_main_verb(items[index + 1 :]):
            item = replace(item, kind=ItemKind.RELATION, relations=frozenset({"have"}))
        if item.name is not None and ahead is not None and ahead.kind is ItemKind.COPULA and _is_adjective(item.name):
            item = replace(item, modifier=True)
        settled.append(item)
    return settled


def _is_adjective(name: Name) -> bool:
    """Whether a name behind a copula looks like an adjective of origin ("is English")."""
    return len(name.words) == 1 and bool(_ORIGIN.search(name.words[0]))


def _is_main_verb(following: Sequence[Item]) -> bool:
    """Whether no other verb or relation word follows an auxiliary in its clause ("has 1,665 steps")."""
    for item in following:
        if item.kind in (ItemKind.RELATION, ItemKind.COPULA):
            return False
        if item.kind in (ItemKind.MARK, ItemKind.RELATIVE):
            break
    return True


def _opens_complement(article: Item, before: Sequence[Item]) -> bool:
    """Whether an article begins a phrase that says what something is: behind a copula, a mark, or "worked as"."""
    if not before or before[-1].kind is ItemKind.COPULA:
        return bool(before)
    if before[-1].norm == "as":
        return any(item.kind in (ItemKind.RELATION, ItemKind.COPULA) for item in before)
    return article.norm in ("a", "an") and before[-1].kind is not ItemKind.PREPOSITION


def _governs(following: Sequence[Item]) -> bool:
    """Whether a noun goes on to what it relates to ("author of"); else it only says what its subject is."""
    if not following:
        return False
    behind = following[0]
    if behind.norm == "by":  # "a novel by X", but "a sculptor by trade"
        return len(following) > 1 and (following[1].value is not None or following[1].kind is ItemKind.DETERMINER)
    return behind.kind in (ItemKind.RELATION, ItemKind.VALUE) or behind.norm in ("of", "at", "in", "for", "to")


def _is_that_of(tokens: Sequence[Token], index: int, before: Sequence[Item]) -> bool:
    """Whether "that of" only repeats the subject's noun ("her profession was that of a weaver")."""
    following = tokens[index + 1].norm if index + 1 < len(tokens) else ""
    return following == "of" and bool(before) and before[-1].kind is ItemKind.COPULA


def _mentioned(
    sentence: str, tokens: Sequence[Token], mention: Mention, before: Sequence[Item], discourse: Discourse
) -> Item:
    """The item of a value in the text; a common noun before a name says what kind of thing it is."""
    value = mention.value
    start, end = tokens[mention.first].start, tokens[mention.last - 1].end
    if isinstance(value, Name):
        wording = value.text or sentence[start:end].removesuffix("'s").removesuffix("’s")
        kind = _kind_from_context(before) if value.kind is NameKind.UNKNOWN else value.kind
        value = replace(value, kind=kind, text=wording)
        opens = not is_governed(before) and not any(_stands_alone(before, index) for index in range(len(before)))
        value = discourse.notice(value)
        if opens:
            discourse.open_with(value)
    owner = tokens[mention.last - 1].possessive
    return Item(ItemKind.VALUE, sentence[start:end], "", start, end, value=value, owner=owner)


def is_governed(before: Sequence[Item]) -> bool:
    """Whether the item behind `before` belongs to a preposition: "in Ulm", but not "in later years Einstein"."""
    for item in reversed(before):
        if item.value is not None or item.kind in (ItemKind.MARK, ItemKind.TIME):
            return False
        if item.kind is ItemKind.PREPOSITION:
            return True
    return False


def _stands_alone(items: Sequence[Item], index: int) -> bool:
    """Whether the item is a name that no preposition governs."""
    return items[index].name is not None and not is_governed(items[:index])


def _kind_from_context(before: Sequence[Item]) -> NameKind:
    """The kind that "the novel" or "the town of" before a name gives it."""
    nouns = [item for item in before[-2:] if item.norm != "of"]
    return KIND_OF_NOUN.get(nouns[-1].norm, NameKind.UNKNOWN) if nouns else NameKind.UNKNOWN


def _definite(
    tokens: Sequence[Token], index: int, mentions: dict[int, Mention], discourse: Discourse
) -> tuple[Item | None, int]:
    """ "the prize" as the name that it stands for, and how many tokens that takes."""
    if tokens[index].norm not in ("the", "this") or index + 1 >= len(tokens) or index + 1 in mentions:
        return None, 1
    noun = tokens[index + 1]
    behind = tokens[index + 2].norm if index + 2 < len(tokens) else ""
    if noun.norm not in KIND_OF_NOUN or noun.is_capital or index + 2 in mentions or behind in ("of", "for"):
        return None, 1
    name = discourse.definite(noun.norm)
    if name is None:
        return None, 1
    start, end = tokens[index].start, noun.end
    owner = noun.possessive
    return Item(ItemKind.VALUE, noun.norm, noun.stem, start, end, value=name, explicit=False, owner=owner), 2


def _word(tokens: Sequence[Token], index: int, before: Sequence[Item], discourse: Discourse) -> Item:
    token = tokens[index]
    if token.norm in PRONOUNS and token.norm not in _RELATIVES:
        name = discourse.pronoun(token.norm)
        if name is not None:
            owner = token.norm in _POSSESSIVES and not (token.norm == "her" and _ends_phrase(tokens, index + 1))
            return Item(
                ItemKind.VALUE, token.norm, token.stem, token.start, token.end, value=name, explicit=False, owner=owner
            )
    kind, relations = _role_of_word(token, before)
    return Item(kind, token.norm, token.stem, token.start, token.end, relations=relations)


def _ends_phrase(tokens: Sequence[Token], index: int) -> bool:
    """Whether no noun can follow: "her" is then an object ("met her in Paris"), not a possessive."""
    if index >= len(tokens):
        return True
    return tokens[index].kind == "mark" or tokens[index].norm in PREPOSITIONS | DETERMINERS | {"and", "but"}


def _role_of_word(token: Token, before: Sequence[Item]) -> tuple[ItemKind, frozenset[str]]:
    """What a word does, and the relations that it speaks of if it is a relation word."""
    norm, nothing = token.norm, frozenset[str]()
    if token.kind == "mark":
        return ItemKind.MARK, nothing
    if norm in NEGATIONS or norm.endswith("n't"):
        return ItemKind.NEGATION, nothing
    if token.stem in ("be", "becom"):
        return ItemKind.COPULA, nothing
    if norm in _RELATIVES:
        return ItemKind.RELATIVE, nothing
    if norm in _CONJUNCTIONS:
        return ItemKind.CONJUNCTION, nothing
    if token.stem in AUXILIARIES:
        return ItemKind.AUXILIARY, nothing
    if norm in PREPOSITIONS:
        return ItemKind.PREPOSITION, nothing
    if norm in ("work", "works") and before and before[-1].kind in (ItemKind.DETERMINER, ItemKind.WORD):
        return ItemKind.RELATION, frozenset({"create"})  # "a work by X", not "X works in Y"
    if token.stem in RELATIONS:
        return ItemKind.RELATION, RELATIONS[token.stem]
    if norm in DETERMINERS:
        return ItemKind.DETERMINER, nothing
    if norm in TIME_NOUNS:
        return ItemKind.TIME, nothing
    if _is_verb(token, before):
        return ItemKind.RELATION, frozenset({f"~{token.stem}"})
    return ItemKind.WORD, nothing


def _is_verb(token: Token, before: Sequence[Item]) -> bool:
    """Whether a word outside the lists looks like a verb: a past tense that is not an adjective before a noun."""
    if token.norm in FUNCTION_WORDS or token.is_capital:
        return False
    past = (token.norm.endswith("ed") and len(token.norm) > 4) or is_irregular_past(token.norm)
    attributive = bool(before) and before[-1].kind in (ItemKind.DETERMINER, ItemKind.PREPOSITION)
    return past and not attributive
