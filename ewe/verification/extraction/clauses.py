"""The clauses of a sentence, from its verbs and what stands before them.

Owns: where verb groups are, where each clause begins and ends, and of what kind it is. There is no parser behind it:
every verb is classified by the words before it, and a clause reaches to the opener of the next one. Knows words and
verbs; not what becomes of a clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ewe.verification.extraction.boundaries import before_introduction, boundary_before, is_clause_mark
from ewe.verification.extraction.groups import VerbGroup, next_group
from ewe.verification.extraction.lists import GERUND_OPENERS
from ewe.verification.extraction.words import Tag, Word
from ewe.verification.wordlists import words_of


class Kind(StrEnum):
    """How a clause is tied to the others."""

    MAIN = "main"
    SHARED = "shares the subject of the clause before it"
    RELATIVE = "relative"
    PARTICIPLE = "participial phrase set off by a comma, or at the beginning"
    REDUCED = "participle behind its noun"
    SUBORDINATE = "subordinate"
    GERUND = "an -ing form behind a preposition"
    ABSOLUTE = "with a subject and an -ing form"


@dataclass(slots=True)
class Clause:
    """One clause as indices of words: [start, end) with its opener, its subject [subject, stop), its verb group.

    subject equals stop where the clause has none of its own; [start, subject) opens or introduces it. The subject of a
    main clause may lie before other clauses ("Smith, who was born in Ulm, died there").
    """

    kind: Kind
    start: int
    subject: int
    stop: int
    verb: VerbGroup
    end: int


_INTRODUCING = (Tag.PREPOSITION, Tag.ADVERB, Tag.SUBORDINATOR, Tag.DATE, Tag.TO, Tag.ING)
_INTRODUCING_NOUNS = words_of("prior due thanks apart aside along alongside")


def find_clauses(words: Sequence[Word]) -> list[Clause]:
    """The clauses in order; empty where no verb is found. What belongs to none of them leads the first one in."""
    clauses: list[Clause] = []
    index = 0
    while index < len(words):
        group, after = next_group(words, index, _finite_verb(clauses, words, index))
        if group is None:
            index = after
            continue
        clause = _classify(words, group, clauses)
        if clause is not None:
            if clauses:
                opens = clause.start if clause.start > clauses[-1].start else clause.verb.first - 1
                clauses[-1].end = min(clauses[-1].end, opens)
            clauses.append(clause)
        index = group.last
    return clauses


def _finite_verb(clauses: Sequence[Clause], words: Sequence[Word], index: int) -> Word | None:
    """The finite verb of the clause that `index` is in; None if it is still to come."""
    for at in range(index - 1, -1, -1):
        if clauses and at < clauses[-1].verb.last:
            last = clauses[-1]
            open_main = last.kind in (Kind.PARTICIPLE, Kind.GERUND) and not has_main(clauses)
            return None if open_main else words[last.verb.first]
        if words[at].tag in (Tag.RELATIVE, Tag.SUBORDINATOR) or is_clause_mark(words[at]):
            return None
        if (
            words[at].tag is Tag.AND
            and words[at - 1].tag is Tag.COMMA
            and clauses
            and _opens_clause(words, at, index, clauses)
        ):
            return None
    return None


def _opens_clause(words: Sequence[Word], at: int, index: int, clauses: Sequence[Clause]) -> bool:
    """Whether ", and" at `at` opens a clause whose subject lies before the verb at `index`: ", and his works sold"."""
    if index - at < 2 or words[at + 1].tag not in (Tag.DETERMINER, Tag.POSSESSIVE, Tag.PRONOUN, Tag.NAME):
        return False
    if words[index].tag in (Tag.BASE, Tag.THIRD):
        return True
    listed = any(word.tag is Tag.COMMA for word in words[clauses[-1].verb.last : at - 1])
    by = index + 1 < len(words) and words[index + 1].norm == "by"
    return words[index].tag is Tag.ED and not listed and not by


def has_main(clauses: Sequence[Clause]) -> bool:
    """Whether one of the clauses is a main clause."""
    return any(clause.kind is Kind.MAIN for clause in clauses)


def _classify(words: Sequence[Word], group: VerbGroup, clauses: Sequence[Clause]) -> Clause | None:
    """The clause of a verb group; None where the words stay within the clause before them."""
    before = words[group.first - 1].tag if group.first else None
    if before is None:
        return None if group.finite else _clause(Kind.PARTICIPLE, 0, group, words)
    if before in (Tag.COMMA, Tag.AND) or is_clause_mark(words[group.first - 1]):
        return _joined(words, group, clauses)
    if not group.finite and (words[group.first - 1].norm in GERUND_OPENERS or words[group.first - 1].norm == "for"):
        start = group.first - 1
        start -= start > 0 and words[start - 1].tag is Tag.COMMA
        return _clause(Kind.GERUND, start, group, words)
    if not group.finite:
        return _reduced(words, group, clauses)
    return _with_subject(words, group, clauses)


def _joined(words: Sequence[Word], group: VerbGroup, clauses: Sequence[Clause]) -> Clause | None:
    """A verb behind a comma or conjunction: the main verb at last, one more verb, or a participial phrase."""
    start = group.first - 1
    while start > 0 and words[start - 1].tag in (Tag.COMMA, Tag.AND):
        start -= 1
    start = before_introduction(words, start, clauses[-1].verb.last if clauses else 0)
    if not has_main(clauses) and group.may_be_finite:
        main = _main(words, group, 0, 0, clauses[0].start if clauses else start)
        if main is not None:
            group.finite = True
            return main
    if _is_adjective(words, group, clauses):
        return None
    shares = words[group.first - 1].tag is Tag.AND or (group.may_be_finite and _is_list(words, group, clauses))
    if shares and clauses and (group.may_be_finite or _is_ing(words, clauses[-1].verb)):
        return _clause(Kind.SHARED, start, group, words)
    if group.finite:
        return _clause(Kind.SHARED, start, group, words) if clauses else None
    if words[group.first - 1].tag is Tag.AND:
        return None
    return _clause(Kind.PARTICIPLE, start, group, words)


def _is_ing(words: Sequence[Word], verb: VerbGroup) -> bool:
    return not verb.finite and words[verb.head].tag is Tag.ING


def _is_adjective(words: Sequence[Word], group: VerbGroup, clauses: Sequence[Clause]) -> bool:
    """Whether a participle behind "and" describes the noun after it ("a brave and determined girl")."""
    if group.finite or words[group.first - 1].tag is not Tag.AND or not clauses or not clauses[-1].verb.finite:
        return False
    bare = group.last < len(words) and words[group.last].tag in (Tag.NOUN, Tag.ED)
    listed = words[group.first - 2].tag is Tag.COMMA and any(
        words[at].tag is Tag.COMMA for at in range(clauses[-1].verb.last, group.first - 2)
    )
    if bare and listed and words[group.last].tag is Tag.NOUN and not words[group.last].norm.endswith("s"):
        return True  # "politics, human rights, and organized crime"
    adjacent = group.first >= 3 and words[group.first - 3].tag in (Tag.DETERMINER, Tag.ADVERB, Tag.POSSESSIVE)
    return bare and adjacent and words[group.first - 2].tag in (Tag.NOUN, Tag.ED)


def _is_list(words: Sequence[Word], group: VerbGroup, clauses: Sequence[Clause]) -> bool:
    """Whether a past form behind a comma is one of several verbs and no participle: an object follows it."""
    if not clauses or clauses[-1].kind not in (Kind.MAIN, Kind.SHARED):
        return False
    follows = words[group.last].tag if group.last < len(words) else None
    adjacent = clauses[-1].verb.last >= group.first - 1
    return adjacent or follows in (Tag.DETERMINER, Tag.POSSESSIVE, Tag.NAME, Tag.QUOTE, Tag.NUMBER)


def _reduced(words: Sequence[Word], group: VerbGroup, clauses: Sequence[Clause]) -> Clause | None:
    """A participle right behind a noun ("a band formed in 1969"); ", with X being Y" brings its subject along."""
    if words[group.head].tag is Tag.ING or words[group.head].norm == "being":
        floor = clauses[-1].verb.last if clauses else 0
        for at in range(group.first - 1, max(floor, 1) - 1, -1):
            if words[at].norm == "with" and words[at - 1].tag is Tag.COMMA:
                return _clause(Kind.ABSOLUTE, at - 1, group, words, at + 1)
            if words[at].tag in (Tag.COMMA, Tag.PREPOSITION):
                break
    if not clauses or words[group.first - 1].tag not in (
        Tag.NOUN,
        Tag.NAME,
        Tag.QUOTE,
        Tag.NUMBER,
        Tag.THIRD,
        Tag.BASE,
    ):
        return None
    return _clause(Kind.REDUCED, group.first, group, words)


def _with_subject(words: Sequence[Word], group: VerbGroup, clauses: Sequence[Clause]) -> Clause | None:
    """A finite verb with words before it that may be its subject."""
    floor = clauses[-1].verb.last if clauses else 0
    at = boundary_before(words, group, floor, bool(clauses))
    opener = words[at] if at >= floor else None
    if opener is None and clauses:
        return None
    if opener is None or opener.tag is Tag.MARK:
        return _main(words, group, at + 1, at + 1, group.first)
    start = at - 1 if at > floor and words[at - 1].tag is Tag.COMMA else at
    if opener.tag is Tag.RELATIVE:
        return _relative(words, group, at)
    if opener.tag is Tag.SUBORDINATOR:
        return _clause(Kind.SUBORDINATE, start, group, words, at + 1)
    return _main(words, group, start, at + 1, group.first)


def _relative(words: Sequence[Word], group: VerbGroup, at: int) -> Clause | None:
    """The clause behind "who", "which", "where", or "that" behind a noun."""
    if words[at].norm == "that" and (at == 0 or words[at - 1].tag not in (Tag.NOUN, Tag.NAME, Tag.COMMA)):
        return None
    start = at
    while start > 0 and words[start - 1].tag in (Tag.PREPOSITION, Tag.SUBORDINATOR, Tag.PRONOUN, Tag.DETERMINER):
        start -= 1  # "during which", "both of which"
    start -= start > 0 and words[start - 1].tag is Tag.COMMA
    return _clause(Kind.RELATIVE, start, group, words, at + 1)


def _main(words: Sequence[Word], group: VerbGroup, start: int, first: int, stop: int) -> Clause | None:
    """A main clause with its introduction and subject in [first, stop); None if nothing is left for a subject."""
    subject = first
    for comma in range(first, stop):
        if words[comma].tag is Tag.COMMA:
            if not (words[subject].tag in _INTRODUCING or words[subject].norm in _INTRODUCING_NOUNS):
                break
            subject = comma + 1
    if subject >= stop or words[subject].tag in (Tag.PREPOSITION, Tag.SUBORDINATOR, Tag.COMMA):
        return None
    return Clause(Kind.MAIN, start, subject, stop, group, len(words))


def _clause(kind: Kind, start: int, group: VerbGroup, words: Sequence[Word], subject: int | None = None) -> Clause:
    """A clause that reaches to the end so far; without `subject` it has none of its own."""
    return Clause(kind, start, group.first if subject is None else subject, group.first, group, len(words))
