"""The clauses of a sentence that state something of their own; when it is not plain, the sentence stays whole.

There is no parser here. A sentence is cut before a coordinated clause with a subject and a verb of its own, before a
coordinated verb that shares the subject, and before a relative clause that ends it. What is cut off is given the
subject of the clause before, so that it can be read alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ewe.text.english import PREPOSITIONS, words_of
from ewe.verification.extraction.expletives import is_expletive
from ewe.verification.extraction.masking import masked
from ewe.verification.extraction.relative_clauses import Clause, relative_clause
from ewe.verification.extraction.subjects import Subject, refers_to, subject_of
from ewe.verification.extraction.verb_forms import ADVERBS, ARTICLES, verb_form
from ewe.verification.extraction.verbs import (
    AUXILIARY_FORMS,
    BE,
    FINITE,
    HAVE,
    MODALS,
    PARTICIPLES,
    PLAIN_VERBS,
)

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CUT = re.compile(r";\s+(?:and |but |however,? |while |whereas )?|(,?)\s+(and|but|while|whereas)\s+|,\s+(?=[a-z]+\b)")
_NEVER = re.compile(
    r"\b(?:if|unless|either|neither|whether|not only|both|said|says|claimed|claims|believed|believes|argued|argues"
    r"|stated|states|reported|reportedly|allegedly|thought|think|suggests?|suggested|according to|so that|would"
    r"|supposedly|rumou?red|should|must)\b",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\b(?:that|who|which|whose|whom|where|when|because|while|although|though|as|after|before|since|until)\b"
)
_PRONOUNS = words_of("he she it they his her its their")
_MOST_SUBJECT_WORDS = 8


@dataclass(slots=True)
class _Open:
    """The clause being read: where it begins, its subject, and what takes the place of its first `skip` letters."""

    start: int
    subject: Subject
    prefix: str = ""
    skip: int = 0


def split_clauses(text: str) -> list[Clause]:
    """The clauses of a sentence in order, each with its place in the text; where nothing is cut, the text itself."""
    whole = [Clause(text, 0, len(text.rstrip()))]
    hidden = masked(text)
    if hidden is None or _NEVER.search(hidden):
        return whole
    first = subject_of(text, hidden)
    if first is None:
        return whole
    clauses = list(_coordinated(text, hidden, first))
    last = clauses.pop()
    return clauses + list(relative_clause(last, text, hidden))


def _coordinated(text: str, hidden: str, first: Subject) -> Iterator[Clause]:
    """Cuts before coordinated clauses and verbs, from the left."""
    now = _Open(0, first)
    for cut in _cuts(hidden):
        following = _following(text, hidden, now, cut)
        if following is not None:
            yield _closed(text, now, cut.start())
            now = following
    yield _closed(text, now, len(text.rstrip()))


def _cuts(hidden: str) -> list[re.Match[str]]:
    """Where clauses may begin. A comma alone counts only in front of a verb, and if an "and" before a verb follows."""
    cuts = list(_CUT.finditer(hidden))
    return [cut for at, cut in enumerate(cuts) if not _is_comma(cut) or _opens_series(hidden, cuts[at:])]


def _is_comma(cut: re.Match[str]) -> bool:
    return not cut[2] and cut[0].startswith(",")


def _opens_series(hidden: str, cuts: list[re.Match[str]]) -> bool:
    """Whether a comma before a verb is one of a series of verbs that ends with ", and"."""
    for cut in cuts:
        if verb_form(hidden, cut.end()) is None:
            return False
        if not _is_comma(cut):
            return cut[1] == ","
    return False


def _following(text: str, hidden: str, now: _Open, cut: re.Match[str]) -> _Open | None:
    """The clause that begins at a cut, or None where none does that can be read alone."""
    left, right = hidden[now.start : cut.start()], hidden[cut.end() :]
    if not _is_complete(left, now) or len(_WORD.findall(right)) < 2:
        return None
    if _is_comma(cut):
        return _shared(hidden, now, cut, left)
    own = _with_own_subject(text, hidden, now, cut)
    if own is not None:
        return own
    return _shared(hidden, now, cut, left) if cut[2] in ("and", "but") else None


def _is_complete(left: str, now: _Open) -> bool:
    """Whether something follows the verb of the clause so far, and it does not end in a verb ("wrote and directed")."""
    words = [word[0] for word in _WORD.finditer(left, max(now.subject.verb - now.start, 0))]
    if words and words[0] in AUXILIARY_FORMS and now.subject.is_passive:
        words = words[1:]
    return len(words) >= 2 and words[-1].lower() not in FINITE | PREPOSITIONS | ADVERBS - {"now"}


def _with_own_subject(text: str, hidden: str, now: _Open, cut: re.Match[str]) -> _Open | None:
    """A clause with subject and verb of its own, its pronoun replaced where it means the subject before."""
    rest = hidden[cut.end() :]
    own = subject_of(text[cut.end() :], rest, first=False)
    first = _WORD.match(rest)
    is_joint = cut[1] == "," or cut[0].startswith(";")
    if own is None or first is None or re.search(r"\bthat\b", hidden[now.start : cut.start()]):
        return None
    if is_joint and is_expletive(text[cut.end() :]):
        return _Open(cut.end(), own.moved(cut.end()))
    word = first[0].lower()
    left = text[now.start : cut.start()]
    shifted = own.moved(cut.end())
    if word in _PRONOUNS:
        if not (is_joint or own.text.lower() == word) or not refers_to(word, now.subject, _filled(left, now)):
            return None
        return _replaced(cut.end(), first[0], shifted, now.subject)
    is_named = cut[0].startswith(";") or _is_named(own.text)
    if not is_joint or own.has_lead or len(own.text.split()) > _MOST_SUBJECT_WORDS or not is_named:
        return None
    pronouns = {match[0].lower() for match in _WORD.finditer(rest)} & (_PRONOUNS | {"him", "them"})
    return None if pronouns else _Open(cut.end(), shifted)


def _is_named(subject: str) -> bool:
    """Whether a subject is a name or begins with an article, and is no object that a verb happens to follow."""
    return subject[0].isupper() or subject.split()[0].lower() in ARTICLES or subject[0].isdigit()


def _replaced(start: int, word: str, own: Subject, before: Subject) -> _Open:
    """The clause that begins with a pronoun, with the subject before in its place."""
    if word.lower() in ("his", "her", "its", "their"):
        prefix = _OWN.get(before.text.lower(), f"{before.text}'s")
        subject = Subject(prefix + own.text[len(word) :], own.verb, False, own.is_passive, own.is_be)
        return _Open(start, subject, prefix + " ", len(word))
    return _Open(start, Subject(before.text, own.verb, False, own.is_passive, own.is_be), before.text + " ", len(word))


_OWN = {"he": "his", "she": "her", "it": "its", "they": "their"}


def _shared(hidden: str, now: _Open, cut: re.Match[str], left: str) -> _Open | None:
    """A verb that shares the subject before ("was born in Oslo and moved to Rome")."""
    form = verb_form(hidden, cut.end())
    scoped = now.subject.has_lead and not re.search(r"\d{4}", hidden[cut.end() :])
    if form is None or scoped or _has_inner_clause(left, now):
        return None
    verb = hidden[now.subject.verb :].split(None, 1)[0].lower()
    helper = ""
    if form.is_auxiliary:
        if form.word in HAVE | BE and verb in MODALS:
            return None
    elif now.subject.is_passive and form.is_participle:
        helper = f"{verb} "
    elif not form.is_active or verb in MODALS or (verb in HAVE and _is_perfect(hidden, now)):
        return None
    subject = Subject(now.subject.text, cut.end(), False, bool(helper), form.word in BE)
    return _Open(cut.end(), subject, f"{now.subject.text} {helper}")


def _is_perfect(hidden: str, now: _Open) -> bool:
    """Whether "has" or "had" is followed by a participle, which the next verb might share."""
    words = [word[0] for word in list(_WORD.finditer(hidden, now.subject.verb))[:3]]
    return any(word.endswith(("ed", "en", "been")) or word in PARTICIPLES for word in words[1:])


def _has_inner_clause(left: str, now: _Open) -> bool:
    """Whether another verb or a clause stands in the clause so far, to which the next verb might belong."""
    if ";" in left or _has_second_verb(left, now):
        return True
    for match in _SUBORDINATE.finditer(left, max(now.subject.verb - now.start, 0)):
        if match[0] in ("that", "who", "which", "whose", "whom", "where"):
            return True
        if any(word[0] in FINITE for word in _WORD.finditer(left, match.end())):
            return True
    return False


def _has_second_verb(left: str, now: _Open) -> bool:
    """Whether the clause so far has a finite verb behind its own that no agent ("by ...") makes a participle."""
    words = [word[0] for word in _WORD.finditer(left, max(now.subject.verb - now.start, 0))]
    behind = 1
    while behind < len(words) and words[behind - 1] in AUXILIARY_FORMS | ADVERBS:
        behind += 1
    return any(
        word in PLAIN_VERBS and words[at + 1 : at + 2] != ["by"] for at, word in enumerate(words) if at >= behind
    )


def _filled(piece: str, now: _Open) -> str:
    return now.prefix + piece[now.skip :].lstrip() if now.prefix else piece


def _closed(text: str, now: _Open, end: int) -> Clause:
    """The clause up to `end`, as a sentence of its own."""
    end = len(text[:end].rstrip().rstrip(",;"))
    clause_text = _filled(text[now.start : end], now)
    clause_text = clause_text[:1].upper() + clause_text[1:]
    return Clause(
        clause_text if clause_text.endswith((".", "!", "…")) or end == len(text.rstrip()) else f"{clause_text}.",
        now.start,
        end,
    )
