"""Lists inside a statement: one statement per item.

Owns: where the items of "A, B and C" begin and end, and what they share. It splits only where the parts are surely
alike; else the statement stays whole, which is weaker but true. Knows words and noun phrases; no clauses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ewe.verification.extraction.lists import FIXED_PAIRS, JOINING, OCCUPATIONS, OPINIONS
from ewe.verification.extraction.nouns import noun_phrase
from ewe.verification.extraction.words import Tag, Word, put_in
from ewe.verification.lexicon import is_trade
from ewe.verification.wordlists import words_of

_NOMINAL = (Tag.NOUN, Tag.NAME, Tag.QUOTE, Tag.NUMBER, Tag.DATE, Tag.THIRD, Tag.BASE, Tag.ING)
_OWN_START = (Tag.DETERMINER, Tag.POSSESSIVE)
_ITEM_START = (*_NOMINAL, *_OWN_START, Tag.ED, Tag.ADVERB)
_ENDS = (Tag.COMMA, Tag.AND, Tag.SUBORDINATOR, Tag.MARK, Tag.RELATIVE)
_ADJECTIVE = re.compile(r"(?:[^m]al|ic|ive|ous|ful|ical|ary|ible|able|ent|ish|ese|less|[^t]ian|ern|ese|ish|ican)$")
_NEVER_TOGETHER = words_of("respectively together each between")
_MAX_ITEMS = 16


@dataclass(frozen=True, slots=True)
class _List:
    """Items [start, end) of one list; shared: [start, end) of those words of the first that the others take over."""

    items: list[tuple[int, int]]
    shared: tuple[int, int] | None = None


def split_lists(before: Sequence[Word], rest: Sequence[Word], copular: bool) -> list[list[Word]]:
    """One statement per item of the lists in `rest`, each with subject and verb (`before`) in front."""
    waiting, done = [list(rest)], list[list[Word]]()
    while waiting and len(done) + len(waiting) < _MAX_ITEMS:
        current = waiting.pop(0)
        found = _find_list(current, copular)
        if found is None:
            done.append(current)
        else:
            waiting = [*_apart(current, found), *waiting]
    parts = [*done, *waiting]
    return [[*(_borrowed(before) if number else before), *part] for number, part in enumerate(parts)]


def _borrowed(words: Sequence[Word]) -> list[Word]:
    return [word.borrowed() for word in words]


def _apart(words: list[Word], found: _List) -> list[list[Word]]:
    """One statement per item, the shared words before it."""
    first, last = found.items[0], found.items[-1]
    before, behind = words[: first[0]], words[last[1] :]
    if before and before[-1].norm == "both":
        before = before[:-1]
    apart = []
    for number, (start, end) in enumerate(found.items):
        item = words[start:end]
        while item and item[-1].tag is Tag.COMMA:
            item.pop()
        if number and found.shared is not None:
            shared = words[found.shared[0] : found.shared[1]]
            item = [*_borrowed(shared[:-1]), _article(shared[-1], item[0]).borrowed(), *item]
        tail = behind if number == len(found.items) - 1 else _shared_object(words, found, item)
        apart.append([*(before if number == 0 else _borrowed(before)), *item, *tail])
    return apart


def _shared_object(words: Sequence[Word], found: _List, item: Sequence[Word]) -> list[Word]:
    """What "of" adds to the last of several posts under one article ("the founder and director of the mill")."""
    start, end = found.items[-1]
    of = next((at for at in range(start, end) if words[at].norm == "of"), None)
    bare = not any(word.tag is Tag.PREPOSITION for word in item)
    return _borrowed(words[of:end]) if found.shared and of is not None and bare else []


def _article(article: Word, first: Word) -> Word:
    """The article of the first item for another item; "a" and "an" as the sound asks."""
    if article.norm not in ("a", "an"):
        return article
    return put_in("an" if first.norm[:1] in "aeiou" else "a", Tag.DETERMINER)


def _find_list(words: Sequence[Word], copular: bool) -> _List | None:
    """The first list that can be taken apart."""
    if any(word.norm in _NEVER_TOGETHER or word.text == ";" for word in words):
        return None
    depth, quoted = 0, False
    words = list(words)
    for at, word in enumerate(words):
        depth += (word.tag is Tag.OPEN) - (word.tag is Tag.CLOSE)
        quoted ^= word.text == '"'
        if quoted:
            continue
        if word.tag is Tag.AND and word.norm in ("and", "as well as", "&") and depth == 0:
            found = _list_at(words, at, copular)
            if found is not None:
                return found
            words[at] = replace(word, tag=Tag.NOUN)  # part of one item of a longer list
    return None


def _list_at(words: Sequence[Word], at: int, copular: bool) -> _List | None:
    """The list whose last item follows the conjunction at `at`."""
    right = at + 1
    end = _end_of_item(words, right)
    if right >= end or words[right].tag not in (*_ITEM_START, Tag.PREPOSITION) or _is_no_noun(words, right, end):
        return None
    middle: list[tuple[int, int]] = []
    stop = at - 1 if words[at - 1].tag is Tag.COMMA else at
    while True:
        comma = next((k for k in range(stop - 1, 0, -1) if words[k].tag in (Tag.COMMA, Tag.AND)), None)
        inside = comma is not None and words[comma].tag is Tag.COMMA and _is_item(words[comma + 1 : stop], words[right])
        if comma is None or not inside:
            break
        middle.insert(0, (comma + 1, stop))
        stop = comma
    if middle and stop == middle[0][0] - 1 and not _reaches_item(words, stop):
        return None
    first = _first_item(words, stop, right, end, comma + 1 if comma is not None else 0)
    items = [first, *middle, (right, end)] if first is not None else []
    if first is None or not _alike(words, items[-2], (right, end), copular):
        return None
    return _List(items, _shared(words, first, right))


def _is_no_noun(words: Sequence[Word], right: int, end: int) -> bool:
    """Whether a verb ("and uncover the truth") or a lone adverb ("and internationally") follows the conjunction."""
    follows = words[right + 1].tag if right + 1 < end else None
    if words[right].tag in (Tag.NOUN, Tag.BASE):
        return follows in _OWN_START
    return words[right].tag is Tag.ADVERB and follows in (None, Tag.TO)


def _reaches_item(words: Sequence[Word], stop: int) -> bool:
    return stop > 0 and words[stop - 1].tag in (*_NOMINAL, Tag.CLOSE, Tag.ED, Tag.ADVERB)


def _end_of_item(words: Sequence[Word], start: int) -> int:
    """Where the item that begins at `start` ends: before the next comma, conjunction or clause outside brackets."""
    depth = 0
    for at in range(start, len(words)):
        depth += (words[at].tag is Tag.OPEN) - (words[at].tag is Tag.CLOSE)
        if depth == 0 and words[at].tag in _ENDS and at > start:
            return at
    return len(words)


def _is_item(words: Sequence[Word], right: Word) -> bool:
    """Whether the words between two commas are an item like the last one."""
    if not words or words[0].norm in ("including", "such") or any(word.tag is Tag.RELATIVE for word in words):
        return False
    if right.tag is Tag.PREPOSITION:
        return words[0].tag is Tag.PREPOSITION
    return words[0].tag in _ITEM_START


def _first_item(words: Sequence[Word], stop: int, right: int, end: int, floor: int) -> tuple[int, int] | None:
    """The first item, which ends before `stop`: the noun phrase there, or one that is built like the last item."""
    last = words[right]
    if last.tag is Tag.ADVERB and right + 1 < end and words[right + 1].tag is Tag.PREPOSITION:
        last = words[right + 1]  # "as a partner and later as a lawyer"
    if last.tag is Tag.PREPOSITION:
        same = [at for at in range(floor, stop) if words[at].norm == last.norm]
        return (same[-1], stop) if same else None
    if last.tag is Tag.DATE:
        return (stop - 1, stop) if words[stop - 1].tag is Tag.DATE else None
    repeated = [at for at in range(floor, stop) if words[at].norm == last.norm and last.tag not in _OWN_START]
    if repeated:
        return repeated[-1], stop
    if last.tag is Tag.ING and _is_verbal(words, right):
        verbal = [at for at in range(floor, stop) if words[at].tag is Tag.ING and _is_verbal(words, at)]
        return (verbal[-1], stop) if verbal else None
    start, _ = noun_phrase(words, stop, floor)
    openings = [at for at in range(floor, stop) if words[at].tag in _OWN_START]
    if last.norm in ("a", "an"):
        indefinite = [at for at in openings if words[at].norm in ("a", "an")]
        if indefinite:
            return indefinite[-1], stop
    common = last.tag in _OWN_START and not any(word.tag is Tag.NAME for word in words[right + 1 : right + 2])
    if common and any(word.tag is Tag.PREPOSITION for word in words[right:end]):
        built = [at for at in openings if at <= start and _governs(words, at, stop)]
        start = built[0] if built else start
    return (start, stop) if start < stop else None


def _is_verbal(words: Sequence[Word], at: int) -> bool:
    """Whether an -ing form has an object or complement, so that it is no plain noun."""
    follows = words[at + 1].tag if at + 1 < len(words) else None
    return follows in (Tag.DETERMINER, Tag.PREPOSITION, Tag.NAME, Tag.POSSESSIVE, Tag.QUOTE, Tag.TO, Tag.ADVERB)


def _governs(words: Sequence[Word], at: int, stop: int) -> bool:
    """Whether the noun phrase at `at` goes on with a preposition."""
    while at < stop and words[at].tag not in (Tag.PREPOSITION, Tag.TO):
        at += 1
    return at < stop


def _shared(words: Sequence[Word], first: tuple[int, int], right: int) -> tuple[int, int] | None:
    """The determiner or owner of the first item that the others share; None if they bring their own."""
    own = words[right].tag in (*_OWN_START, Tag.NAME, Tag.QUOTE, Tag.NUMBER, Tag.DATE, Tag.PREPOSITION)
    owner = next((at for at in range(*first) if words[at].possessive), None)
    if owner is not None and owner + 1 < first[1] and not own:
        return first[0], owner + 1
    opening = words[first[0]]
    if own or words[right].possessive or opening.tag not in _OWN_START or opening.norm in ("some", "all", "both"):
        return None
    return first[0], first[0] + 1


def _alike(words: Sequence[Word], left: tuple[int, int], right: tuple[int, int], copular: bool) -> bool:
    """Whether two items can stand for each other, and the first one without what follows the last."""
    one, other = words[left[0] : left[1]], words[right[0] : right[1]]
    before = words[max(0, left[0] - 3) : left[0]]
    if any(word.norm in JOINING for word in (*before, *one)) or (before and before[-1].tag is Tag.TO):
        return False
    pair = f"{one[-1].norm} and {other[0].norm}"
    if pair in FIXED_PAIRS:
        return False
    bare = [word for word in one if word.tag not in (*_OWN_START, Tag.ADVERB)]
    if one[-1].tag is other[0].tag is Tag.NAME and any(link in one[-1].text for link in (" of ", " for ")):
        return False  # "the Centre for Law and Society"
    if bare and _describes(bare[-1], one, other):
        return False
    if len(bare) != 1 or other[0].tag in _OWN_START:
        return bool(bare) and bare[-1].tag in (*_NOMINAL, Tag.CLOSE, Tag.DATE)
    return _stands_alone(bare[0], other, copular)


def _describes(last: Word, one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether a singular before "and" may only describe the plural at the end ("health and urgent care centres")."""
    noun = next((at for at, word in enumerate(other) if word.tag not in _NOMINAL), len(other))
    plural = noun > 1 and other[noun - 1].tag is not Tag.NAME and other[noun - 1].norm.endswith("s")
    own = any(word.tag in (*_OWN_START, Tag.NAME, Tag.QUOTE, Tag.PREPOSITION) for word in (*one, other[0]))
    return plural and not own and not last.norm.endswith("s")


def _stands_alone(single: Word, other: Sequence[Word], copular: bool) -> bool:
    """Whether one word before "and" is a noun of its own, not half of what describes the noun behind."""
    head = [word for word in other[:3] if word.tag in _NOMINAL]
    longer = len(head) > 1 and other[1].tag in _NOMINAL
    described = (
        other[0].tag in (Tag.ED, Tag.PARTICIPLE) or other[0].norm in OPINIONS or _ADJECTIVE.search(other[0].norm)
    )
    if longer and described and single.tag is Tag.NOUN and not is_trade(single.norm):
        return False
    if is_trade(single.norm) or single.norm in OCCUPATIONS:
        return True
    if single.tag in (Tag.QUOTE, Tag.NAME):
        return not (longer and other[1].tag in (Tag.NOUN, Tag.BASE, Tag.THIRD))
    if single.tag in (Tag.NUMBER, Tag.DATE):
        return not longer
    if single.tag in (Tag.ED, Tag.PARTICIPLE, Tag.ADVERB) or single.norm in OPINIONS or _ADJECTIVE.search(single.norm):
        return False
    return not longer or (single.norm.endswith("s") and not single.norm.endswith("ics") and not copular)
