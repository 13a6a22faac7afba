"""From a sentence to its items; pronouns and "the prize" are replaced by what they stand for."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ewe.text import english
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.dates_and_numbers import find_date, find_number
from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, RELATIONS, NameKind
from ewe.verification.value_comparison.parts_of_speech import Item, ItemKind, is_governed, settle
from ewe.verification.value_comparison.proper_names import find_name, quoted_names
from ewe.verification.value_comparison.tokens import Mention, Token, tokenize
from ewe.verification.value_comparison.values import Name

_RELATIVES = english.words_of("who which whom whose where when while whereas although though because that")
_CONJUNCTIONS = english.words_of("and but or")
_BEFORE_PHRASES = english.PREPOSITIONS | english.DETERMINERS | {"and", "but"}
_POSSESSIVES = english.words_of("his her hers its their theirs")


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
    return settle(items)


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
    if token.norm in english.PRONOUNS and token.norm not in _RELATIVES:
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
    return tokens[index].kind == "mark" or tokens[index].norm in _BEFORE_PHRASES


def _role_of_word(token: Token, before: Sequence[Item]) -> tuple[ItemKind, frozenset[str]]:
    """What a word does, and the relations that it speaks of if it is a relation word."""
    norm, nothing = token.norm, frozenset[str]()
    if token.kind == "mark":
        return ItemKind.MARK, nothing
    if norm in english.NEGATIONS or norm.endswith("n't"):
        return ItemKind.NEGATION, nothing
    if token.stem in ("be", "becom"):
        return ItemKind.COPULA, nothing
    if norm in _RELATIVES:
        return ItemKind.RELATIVE, nothing
    if norm in _CONJUNCTIONS:
        return ItemKind.CONJUNCTION, nothing
    if token.stem in english.AUXILIARIES:
        return ItemKind.AUXILIARY, nothing
    if norm in english.PREPOSITIONS:
        return ItemKind.PREPOSITION, nothing
    if norm in ("work", "works") and before and before[-1].kind in (ItemKind.DETERMINER, ItemKind.WORD):
        return ItemKind.RELATION, frozenset({"create"})  # "a work by X", not "X works in Y"
    if token.stem in RELATIONS:
        return ItemKind.RELATION, RELATIONS[token.stem]
    if norm in english.DETERMINERS:
        return ItemKind.DETERMINER, nothing
    if norm in english.TIME_NOUNS:
        return ItemKind.TIME, nothing
    if _is_verb(token, before):
        return ItemKind.RELATION, frozenset({f"~{token.stem}"})
    return ItemKind.WORD, nothing


def _is_verb(token: Token, before: Sequence[Item]) -> bool:
    """Whether a word outside the lists looks like a verb: a past tense that is not an adjective before a noun."""
    if token.norm in english.FUNCTION_WORDS or token.is_capital:
        return False
    past = (token.norm.endswith("ed") and len(token.norm) > 4) or english.is_irregular_past(token.norm)
    attributive = bool(before) and before[-1].kind in (ItemKind.DETERMINER, ItemKind.PREPOSITION)
    return past and not attributive


def find_mentions(sentence: str, tokens: Sequence[Token]) -> list[Mention]:
    """All values of a sentence, in order, without overlaps: quoted titles, dates, numbers, then names."""
    mentions = quoted_names(sentence, tokens)
    taken = {index for mention in mentions for index in range(mention.first, mention.last)}
    index = 0
    finders: tuple[Callable[[Sequence[Token], int], Mention | None], ...] = (find_date, find_number, find_name)
    while index < len(tokens):
        found = None if index in taken else next(filter(None, (find(tokens, index) for find in finders)), None)
        if found is not None and taken.isdisjoint(range(found.first, found.last)):
            mentions.append(found)
            index = found.last
        else:
            index += 1
    return sorted(mentions, key=lambda mention: mention.first)
