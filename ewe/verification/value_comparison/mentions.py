"""Finding the values of a sentence: dates, numbers, proper names and titles."""

import re
from collections.abc import Callable, Sequence

from ewe.text.english import FUNCTION_WORDS, MONTHS, WEEKDAYS, words_of
from ewe.verification.value_comparison.dates_and_numbers import find_date, find_number
from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, RELATIONS, NameKind
from ewe.verification.value_comparison.tokens import Mention, Token, month_at, norm_at
from ewe.verification.value_comparison.values import Name

_QUOTED = re.compile(
    r"“([^“”]{2,80})”|\"([^\"]{2,80})\"|(?<!\w)‘([^‘’]{2,80})’(?!\w)|(?<![*\w])\*{1,2}([^*]{2,80})\*{1,2}|_([^_]{2,80})_"
)
_SENTENCE_END = re.compile(r"[.!?]$|[.!?]\s")
_LINKS_OF_NAMES = words_of("de la le du des del della di da dos von van der den zu zum ter bin ibn al el")
_BUILDINGS = words_of("bridge palace castle cathedral tower station")
_MAX_WORDS = 10


def find_mentions(sentence: str, tokens: Sequence[Token]) -> list[Mention]:
    """All values of a sentence, in order, without overlaps: quoted titles, dates, numbers, then names."""
    mentions = _quoted_names(sentence, tokens)
    taken = {index for mention in mentions for index in range(mention.first, mention.last)}
    index = 0
    finders: tuple[Callable[[Sequence[Token], int], Mention | None], ...] = (find_date, find_number, _find_name)
    while index < len(tokens):
        found = None if index in taken else next(filter(None, (find(tokens, index) for find in finders)), None)
        if found is not None and taken.isdisjoint(range(found.first, found.last)):
            mentions.append(found)
            index = found.last
        else:
            index += 1
    return sorted(mentions, key=lambda mention: mention.first)


def _quoted_names(sentence: str, tokens: Sequence[Token]) -> list[Mention]:
    """Titles in quotes or emphasis; longer quotations and whole sentences are no titles."""
    found = []
    for match in _QUOTED.finditer(sentence):
        inner = next(group for group in match.groups() if group)
        inside = [i for i, token in enumerate(tokens) if match.start() <= token.start and token.end <= match.end()]
        said = (tokens[i] for i in inside if tokens[i].kind != "mark")
        words = tuple(token.norm for token in said if token.norm not in ("the", "a", "an"))
        is_sentence = _SENTENCE_END.search(inner.strip()[:-1] + " ")
        if 0 < len(words) <= _MAX_WORDS and inner.strip()[:1].isupper() and not is_sentence:
            found.append(Mention(Name(words, NameKind.WORK, inner.strip()), inside[0], inside[-1] + 1))
    return found


def _find_name(tokens: Sequence[Token], i: int) -> Mention | None:
    """A proper name that begins at token i: capitalised words, with connectors between them where they belong."""
    if not _may_be_named(tokens, i) and not _is_small_head(tokens, i):
        return None
    last = i + 1
    while last < len(tokens) and last - i < _MAX_WORDS and not tokens[last - 1].possessive:
        step = _name_step(tokens, i, last)
        if not step:
            break
        last += step
    if re.search(r"[-‐‑][a-z]", tokens[last - 1].text):  # "German-born" is the adjective of "German"
        words = (*(t.norm for t in tokens[i : last - 1]), re.split(r"[-‐‑]", tokens[last - 1].norm)[0])
        return Mention(Name(words), i, last)
    kept = [t for t in tokens[i:last] if t.kind != "mark" and t.norm not in ("the", "of", "a", "an", "and", "for")]
    if not kept:
        return None
    return Mention(Name(tuple(token.norm for token in kept), _kind(kept)), i, last)


def _name_step(tokens: Sequence[Token], first: int, at: int) -> int:
    """How many tokens from `at` go on with the name that began at `first`; 0 if it ends before `at`."""
    token = tokens[at]
    if token.is_capital and token.norm not in MONTHS and token.norm not in WEEKDAYS:
        return 1
    if token.kind == "number" and tokens[at - 1].is_capital and len(token.norm) <= 3 and not token.suffix:
        return 1
    link = 1
    if token.norm in ("of", "for") and any(
        part.norm in KIND_OF_NOUN or part.norm in _BUILDINGS for part in tokens[first:at]
    ):
        link = 2 if norm_at(tokens, at + 1) == "the" else 1
    elif token.norm not in _LINKS_OF_NAMES:
        return 0
    else:
        while link < 3 and norm_at(tokens, at + link) in _LINKS_OF_NAMES:
            link += 1
    behind = tokens[at + link] if at + link < len(tokens) else None
    return link + 1 if behind is not None and behind.is_capital else 0


def _may_be_named(tokens: Sequence[Token], i: int) -> bool:
    """Whether a name can begin here; the first word of a sentence is capitalised anyway and must earn it."""
    token = tokens[i]
    if not token.is_capital or token.norm in WEEKDAYS or month_at(tokens, i):
        return False
    opening = not any(before.is_word for before in tokens[:i])
    goes_on = i + 1 < len(tokens) and tokens[i + 1].is_capital
    if token.norm in FUNCTION_WORDS:
        # "The Red Door" in mid-sentence is a title, "The Harrow Prize" at the beginning has an article.
        return not opening and goes_on and token.norm in ("the", "a", "an")
    if opening and not goes_on and (token.stem in RELATIONS or token.norm.endswith("ly") or token.norm in KIND_OF_NOUN):
        return norm_at(tokens, i + 1) in ("of", "for") and token.norm in KIND_OF_NOUN
    return True


def _is_small_head(tokens: Sequence[Token], i: int) -> bool:
    """Whether token i is the noun of a name written small ("the university of Ulm", "the battle of Ulm")."""
    noun = tokens[i].norm
    named_so = KIND_OF_NOUN.get(noun) in (NameKind.ORGANISATION, NameKind.EVENT) or noun in _BUILDINGS
    behind = tokens[i + 2] if i + 2 < len(tokens) else None
    return named_so and norm_at(tokens, i + 1) == "of" and behind is not None and behind.is_capital


def _kind(tokens: Sequence[Token]) -> NameKind:
    """The kind that the first or last word names ("University of Ulm", "Lake Como", "Nobel Prize")."""
    last, first = tokens[-1].norm, tokens[0].norm
    for word in (last, first, *(token.norm for token in tokens)):
        if word in KIND_OF_NOUN and (len(tokens) > 1 or word == last):
            return KIND_OF_NOUN[word]
    return NameKind.UNKNOWN
