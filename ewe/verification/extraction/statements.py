"""Clauses as statements with a subject of their own.

Owns: who a relative clause, a participle or a second verb speaks of, and the verb form that it takes then. Knows
clauses, words and verbs; no lists inside a statement, no pronouns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ewe.verification.extraction import verbs
from ewe.verification.extraction.clauses import Clause, Kind, find_clauses
from ewe.verification.extraction.forms import PRESENT, be_before, borrowed_subject, owner_of, speaks_of_clause
from ewe.verification.extraction.joining import read_words
from ewe.verification.extraction.lists import JOINT_PASSIVE, KNOWN_FOR, OF_THINGS
from ewe.verification.extraction.nouns import is_definite, noun_phrase
from ewe.verification.extraction.whereabouts import at_place_before, there_spelt_out
from ewe.verification.extraction.words import Tag, Word
from ewe.verification.wordlists import words_of


@dataclass(slots=True)
class Statement:
    """Subject, verb and the rest; lead goes before the subject with a comma, tail is a clause that stays behind it all.

    copular: the verb is a form of "be" by itself, so that the rest says what the subject is.
    """

    subject: list[Word]
    verb: list[Word]
    rest: list[Word]
    lead: list[Word] = field(default_factory=list)
    tail: list[Word] = field(default_factory=list)
    copular: bool = False
    kind: Kind = Kind.MAIN


_RESULTS = words_of("led leads made makes earned earns won helped helps brought resulted marked gave allowed")
_CONTRASTING = words_of("although though while whereas")
_TOLD_APART = _CONTRASTING | {"because", "after", "since"}
_HOSTS = (Kind.MAIN, Kind.SHARED, Kind.PARTICIPLE, Kind.GERUND)


@lru_cache(maxsize=1024)
def read_statements(sentence: str) -> tuple[tuple[Word, ...], tuple[Statement, ...]]:
    """The words of a sentence and the statements of its clauses; kept, since each is context of those behind it."""
    words = tuple(read_words(sentence))
    return words, tuple(StatementBuilder(words, find_clauses(words)).build())


class StatementBuilder:
    """Makes the statements of one sentence; clauses that cannot stand alone stay in the clause before them."""

    def __init__(self, words: Sequence[Word], clauses: Sequence[Clause]) -> None:
        self._words = words
        self._clauses = clauses
        self._found: list[Statement] = []
        self._waiting: list[Clause] = []
        self._lead: list[Word] = []
        self._inlined = False

    def build(self) -> list[Statement]:
        """The statements in the order of their clauses."""
        for clause in self._clauses:
            leans = clause.kind in (Kind.PARTICIPLE, Kind.SHARED, Kind.REDUCED, Kind.GERUND)
            if leans and not self._found:
                self._waiting.append(clause)
                continue
            made = self._make(clause)
            if made is not None:
                made.kind = clause.kind
                head = self._words[clause.verb.head]
                made.copular = made.copular or (head.tag is Tag.BE and head.norm != "being")
                self._found.append(made)
            if clause.kind is Kind.MAIN and self._waiting:
                waiting, self._waiting = self._waiting, []
                for earlier in waiting:
                    self._add_waiting(earlier)
            self._inlined = made is None
        return self._found

    def _add_waiting(self, clause: Clause) -> None:
        """A participial phrase that came before its subject."""
        made = self._make(clause)
        if made is not None:
            made.kind = clause.kind
            self._found.insert(len(self._found) - 1, made)

    def _make(self, clause: Clause) -> Statement | None:
        verb = list(self._words[clause.verb.first : clause.verb.last])
        rest = list(self._words[clause.verb.last : clause.end])
        makers = {
            Kind.MAIN: self._main,
            Kind.SHARED: self._shared,
            Kind.RELATIVE: self._relative,
            Kind.PARTICIPLE: self._participle,
            Kind.REDUCED: self._reduced,
            Kind.GERUND: self._gerund,
            Kind.SUBORDINATE: self._subordinate,
            Kind.ABSOLUTE: self._absolute,
        }
        made = makers[clause.kind](clause, verb, rest)
        if made is None and self._found and clause.start > 0:
            self._found[-1].tail.extend(self._words[clause.start : clause.end])
        return made

    def _main(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement:
        lead = list(self._words[clause.start : clause.subject]) if clause.subject > clause.start else []
        while lead and lead[0].tag in (Tag.COMMA, Tag.AND, Tag.MARK):
            lead.pop(0)
        lead, self._lead = [*self._lead, *lead], []
        while lead and lead[-1].tag is Tag.COMMA:
            lead.pop()
        return Statement(list(self._words[clause.subject : clause.stop]), verb, rest, lead)

    def _shared(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        """A further verb: its subject, and its auxiliary if it needs one, are those of the clause before it."""
        host = self._host(clause)
        if host is None or (self._inlined and self._words[clause.start].tag is not Tag.COMMA):
            return None
        head = self._words[clause.verb.head]
        subject = borrowed_subject(host.subject)
        rest = there_spelt_out(rest, host.rest)
        if head.tag is Tag.ING and not clause.verb.finite:
            return self._from_ing(host, verb, rest)
        bare = not any(word.tag in (Tag.BE, Tag.HAVE, Tag.MODAL, Tag.DO) for word in verb)
        if bare and head.tag in (Tag.ED, Tag.PARTICIPLE):
            auxiliaries = [word for word in host.verb if word.tag in (Tag.BE, Tag.HAVE)]
            object_follows = bool(rest) and rest[0].tag not in (Tag.PREPOSITION, Tag.TO, Tag.ADVERB, Tag.SUBORDINATOR)
            passive = bool(auxiliaries) and (head.norm in JOINT_PASSIVE or not rest) and not object_follows
            if auxiliaries and not host.copular and (passive or head.tag is Tag.PARTICIPLE):
                verb = [*(word.borrowed() for word in auxiliaries), *verb]
        if not host.rest and not host.tail and rest and rest[0].tag is not Tag.PREPOSITION:
            host.rest = [word.borrowed() for word in rest]  # "wrote and directed two plays"
        return Statement(subject, verb, rest)

    def _relative(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        opener = self._words[clause.subject - 1].norm
        own = list(self._words[clause.subject : clause.stop])
        simple = all(word.tag in (Tag.COMMA, Tag.RELATIVE) for word in self._words[clause.start : clause.subject])
        if own and opener == "whose":
            antecedent = self._antecedent(clause)
            return Statement([*owner_of(antecedent), *own], verb, rest) if antecedent else None
        if own and (opener == "where" or (opener == "which" and not simple)):
            if any(word.tag in (Tag.PRONOUN, Tag.NAME) for word in own):
                return Statement(own, verb, at_place_before(self._words, clause, rest) if opener == "where" else rest)
            return None
        if own or not simple or opener not in ("who", "which", "that"):
            return None
        if opener != "who" and self._words[clause.verb.head].norm in _RESULTS:
            return None
        antecedent = self._antecedent(clause)
        return Statement(antecedent, verb, rest) if antecedent else None

    def _antecedent(self, clause: Clause) -> list[Word]:
        """What a relative clause or participle behind a noun speaks of; empty where that has no name here."""
        host = self._found[-1] if self._found else None
        set_off = self._words[clause.start].tag is Tag.COMMA
        earlier = [one.verb.last for one in self._clauses if one.verb.last <= clause.start]
        start, end = noun_phrase(self._words, clause.start, max(earlier, default=0))
        if start < end - 1 and self._words[start].norm in ("several", "many", "numerous", "few", "some", "various"):
            start += 1
        phrase = [word.borrowed() for word in self._words[start:end]]
        personal = self._words[clause.subject - 1].norm == "who" or self._words[clause.verb.head].norm == "born"
        if phrase and phrase[-1].tag in (Tag.NAME, Tag.QUOTE) and (set_off or not (host and host.copular)):
            return phrase
        if host is not None and host.copular and not self._inlined:
            norms = [word.norm for word in host.rest[:2]]
            told = not any(word.tag in (Tag.PREPOSITION, Tag.TO) for word in host.rest)
            if norms != ["one", "of"] and (personal or told):
                return borrowed_subject(host.subject)
        return phrase if is_definite(phrase) and set_off else []

    def _participle(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        host = self._host(clause)
        head = self._words[clause.verb.head]
        if host is None or speaks_of_clause(head, rest):
            return None
        if head.tag is Tag.ING or any(word.norm in ("being", "having") for word in verb):
            return self._from_ing(host, verb, rest)
        subject = borrowed_subject(host.subject)
        if head.norm in OF_THINGS and clause.start > 0:
            start, end = noun_phrase(self._words, clause.start)
            nearest = self._words[start:end]
            if not is_definite(nearest):
                return None
            subject = [word.borrowed() for word in nearest]
        return Statement(subject, [be_before(head, host.verb, subject), *verb], rest)

    def _reduced(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        subject = self._antecedent(clause) if rest or self._words[clause.verb.head].norm in KNOWN_FOR else []
        host = self._host(clause)
        head = self._words[clause.verb.head]
        if host is None or not subject or not host.copular or head.tag is Tag.ING:
            return None
        return Statement(subject, [be_before(head, host.verb, subject), *verb], rest)

    def _subordinate(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        opener = self._words[clause.subject - 1].norm
        leads = not self._found
        if leads and opener not in _CONTRASTING:
            self._lead = list(self._words[clause.start : clause.end])
        if opener not in _TOLD_APART:
            return None
        if not leads and opener not in _CONTRASTING:
            self._found[-1].tail.extend(self._words[clause.start : clause.end])
        return Statement(list(self._words[clause.subject : clause.stop]), verb, rest)

    def _gerund(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        host = self._host(clause)
        if host is None:
            return None
        if self._words[clause.verb.first - 1].norm == "for" and self._found:
            self._found[-1].tail.extend(self._words[clause.start : clause.end])
        return self._from_ing(host, verb, rest, past=True)

    def _absolute(self, clause: Clause, verb: list[Word], rest: list[Word]) -> Statement | None:
        host = self._host(clause)
        subject = list(self._words[clause.subject : clause.stop])
        if host is None or not is_definite(subject):
            return None
        return self._from_ing(replace(host, subject=subject), verb, rest, borrow=False)

    def _host(self, clause: Clause) -> Statement | None:
        """The statement that a clause leans on: the last one; behind a comma and for participles, a main one."""
        if not self._found:
            return None
        outer = clause.kind in (Kind.PARTICIPLE, Kind.ABSOLUTE, Kind.GERUND)
        outer = outer or (clause.kind is Kind.SHARED and self._words[clause.start].tag is Tag.COMMA)
        hosts = [one for one in self._found if one.kind in _HOSTS] if outer else []
        return hosts[-1] if hosts else self._found[-1]

    def _from_ing(
        self, host: Statement, verb: list[Word], rest: list[Word], borrow: bool = True, past: bool = False
    ) -> Statement | None:
        """An -ing form as a verb of its own, in the tense of the clause that it leans on."""
        if any(word.tag is Tag.MODAL for word in host.verb):
            return None
        form = next((word for word in verb if word.tag is Tag.ING or word.norm in ("being", "having")), None)
        if form is None:
            return None
        simple = [word for word in host.verb if word.tag not in (Tag.ADVERB, Tag.NOT)]
        present = not past and len(simple) == 1 and (simple[0].norm in PRESENT or simple[0].tag is Tag.THIRD)
        changed = (verbs.third_of_ing if present else verbs.past_of_ing)(form.norm)
        if changed is None:
            return None
        tag = Tag.BE if form.norm == "being" else Tag.THIRD if present else Tag.PAST
        subject = borrowed_subject(host.subject) if borrow else host.subject
        verb = [replace(word, text=changed, norm=changed, tag=tag) if word is form else word for word in verb]
        return Statement(subject, verb, rest, copular=form.norm == "being" and len(verb) == 1)
