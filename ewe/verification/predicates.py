"""Of whom a sentence says what it says: found by its first verb, the words after it, and the names before it.

A claim can have all the words of its evidence and still be false: "Tikal is a twin-pyramid complex" on "Group Q is a
twin-pyramid complex, and is one of the largest at Tikal".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, PREPOSITIONS, PRONOUNS, normal_form, words_of
from ewe.verification.extraction.verbs import AUXILIARY_FORMS
from ewe.verification.sentence_words import Name, SentenceWords, read_words

_STAND_INS = PRONOUNS | words_of("that which")
_PLACES = PREPOSITIONS - {"by"}
_REACH = 4  # More words than the claim's predicate has, in which a sentence may say the same.
_LINKS = PREPOSITIONS | DETERMINERS | AUXILIARY_FORMS | words_of("be been being")
_NOT_YET = words_of("will shall would may might could should")
_AIMS = frozenset(
    map(
        normal_form,
        words_of(
            """expected planned intended hoped proposed scheduled aimed failed refused declined attempted wanted wished
            due set supposed alleged rumoured rumored believed claimed said thought threatened promised vowed pledged
            ordered asked told advised urged instructed considered pretended tried sought invited"""
        ),
    )
)


def tells_of_another(claim: str, sentence: str) -> bool:
    """Whether the claim says of a name what the sentence says of others; False where that is not plain to see.

    A name that the sentence writes small is none, and one that it has behind what it says may be meant by it, as in
    "they founded two towns: Ada and Lind" or "founded by Ada".
    """
    claimed, own = read_words(claim), read_words(sentence)
    small = set(own.stems).difference(*(name for _, name in own.names))
    named = [name for name, _ in _names_between(claimed, 0, claimed.verb) if name.isdisjoint(small)]
    start = _where_it_says(own, claimed.stems[claimed.verb :], claimed.low[claimed.verb :])
    if not named or start is None:
        return False
    verbs = [at for at in range(start + 1) if own.is_verb[at]]
    last = verbs[-1] if verbs else start
    first = verbs[-2] + 1 if len(verbs) > 1 else 0
    if not _STAND_INS.isdisjoint(own.low[first:last]):
        return False
    before, behind = _names_between(own, first, last), _names_between(own, start, len(own.low))
    meant = [name for name, _ in before] + [name for name, may_be_subject in behind if may_be_subject]
    is_named = any(one <= name or name <= one for one in meant for name in named)
    return not is_named and any(may_be_subject for _, may_be_subject in before)


def says_more_often(claim: str, evidence: str) -> bool:
    """Whether the claim says a content word of its predicate more often than the evidence has it."""
    claimed, own = read_words(claim), Counter(read_words(evidence).stems)
    names = frozenset[str]().union(*(name for _, name in claimed.names))
    predicate = Counter(word for word in _predicate(claimed) if word not in names)
    return any(count > max(1, own[word]) for word, count in predicate.items())


def takes_from_the_lead(claim: str, sentence: str) -> bool:
    """Whether the claim says what only the sentence before can have said: "is open on Mondays" on "It is open all week.
    It is closed on Mondays". sentence: under its title, without the one before it, which may name its subject alone.
    """
    return not set(_predicate(read_words(claim))) <= set(read_words(sentence).stems)


def _predicate(text: SentenceWords) -> list[str]:
    """The content words from the first verb on, as stems."""
    return _content_stems(text.stems[text.verb :], text.low[text.verb :])


def takes_as_done(claim: str, evidence: str) -> bool:
    """Whether the claim states what the evidence only plans, reports or thinks possible: "will be opened", "was
    expected to win", "may harm".
    """
    claimed, own = Counter(read_words(claim).stems), read_words(evidence)
    return any(
        count >= own.stems.count(word)
        for word, count in (_undone(own) - _undone(read_words(claim))).items()
        if word in claimed
    )


def names_another(claim: str, evidence: str) -> bool:
    """Whether the claim has a name behind its verb where the evidence has another one: "led by Berg" on "led by Holm,
    who succeeded Berg". Names in a list are in one place.
    """
    own = _placed_names(read_words(evidence))
    return any(
        (others := own.get(place)) is not None
        and not any(one <= name or name <= one for one in others for name in names)
        for place, names in _placed_names(read_words(claim)).items()
    )


def _placed_names(text: SentenceWords) -> dict[tuple[str, str], list[Name]]:
    """The names behind the first verb, by the nearest word before them and what links them to it ("led", "by")."""
    placed: dict[tuple[str, str], list[Name]] = {}
    last_end, place = 0, ("", "")
    for end, name in text.names:
        begin = end - len(name)
        goes_on = begin == last_end or (begin == last_end + 1 and text.low[last_end] in ("and", "or"))
        if begin > text.verb and not goes_on:
            at = begin - 1 - (text.low[begin - 1] in ("the", "a", "an"))
            link = text.low[at] if text.low[at] in _LINKS else ""
            word = next((one for one in range(at, -1, -1) if text.low[one] not in _LINKS), 0)
            place = (text.stems[word], link)
        if begin > text.verb:
            placed.setdefault(place, []).append(name)
        last_end = end
    return placed


def _undone(text: SentenceWords) -> Counter[str]:
    """The content words right behind one that takes their truth away, how often each."""
    openings = (
        at
        for at, low in enumerate(text.low)
        if (low in _NOT_YET and not _is_month(text.low, at))
        or (text.stems[at] in _AIMS and text.low[at + 1 : at + 2] == ("to",))
    )
    behind = (
        next(
            (word for word, low in zip(text.stems[at + 1 :], text.low[at + 1 :], strict=True) if low not in _LINKS), ""
        )
        for at in openings
    )
    return Counter(filter(None, behind))


def _is_month(low: Sequence[str], at: int) -> bool:
    """Whether a "may" is one: "in May", "May 1911", "3 May"."""
    beside = (*low[max(0, at - 1) : at], *low[at + 1 : at + 2])
    return low[at] == "may" and any(word in PREPOSITIONS or word[0].isdigit() for word in beside)


def _content_stems(stems: Sequence[str], low: Sequence[str]) -> list[str]:
    """The stems of the words that are not function words."""
    return [word for word, form in zip(stems, low, strict=True) if form not in FUNCTION_WORDS]


def _where_it_says(own: SentenceWords, predicate: Sequence[str], low: Sequence[str]) -> int | None:
    """Where the sentence has the predicate's first content word with most of the others after it."""
    content = _content_stems(predicate, low)
    if not content:
        return None
    places = [at for at, word in enumerate(own.stems) if word == content[0]]
    reach = len(predicate) + _REACH
    return max(places, key=lambda at: len(set(content) & set(own.stems[at : at + reach])), default=None)


def _names_between(text: SentenceWords, first: int, last: int) -> list[tuple[Name, bool]]:
    """The names among these words, and whether each may be what is spoken of: after "in" or "of" none is."""
    names = []
    for end, name in text.names:
        begin = end - len(name)
        before = text.low[begin - 1] if begin > 0 else ""
        before = text.low[begin - 2] if before in ("the", "a", "an") and begin > 1 else before
        if first <= begin and end <= last:
            names.append((name, before not in _PLACES))
    return names
