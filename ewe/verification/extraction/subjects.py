"""The subject of a clause, and whether a pronoun of the next clause can only mean it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ewe.text.english import PREPOSITIONS, is_irregular_past, words_of
from ewe.verification.extraction.name_mentions import names_of
from ewe.verification.extraction.verbs import BE, FINITE, PLAIN_VERBS

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LEAD = re.compile(
    r"(?:In|By|Since)\s\d{4}\s+(?=[^\W_])|(?:In|On|At|By|Since|During|After|Before|From|Until|Under|With"
    r"|As)\b[^,;]{1,50},\s+"
)
_SUBORDINATORS = words_of(
    """when while because since although though if unless whereas once after before until as where who which that whose
    despite having being what how why whether there here"""
)
_SINGULAR = words_of("he she his her him")
_NOT_SUBJECTS = words_of("this these those that there it")
_MOST_WORDS = 12


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a clause as it is written; verb: where its finite verb begins; lead: whether a phrase of time or
    place stands in front; passive: whether the verb is a form of be before a participle.
    """

    text: str
    verb: int
    has_lead: bool
    is_passive: bool
    is_be: bool

    def moved(self, by: int) -> Subject:
        """The same subject in a text that begins so many code points earlier."""
        return replace(self, verb=self.verb + by)


def subject_of(clause: str, hidden: str, first: bool = True) -> Subject | None:
    """The subject of a main clause that begins with it; None where it is not plain.

    hidden: the clause, masked. first: whether it begins the sentence, and a word that may be a noun as well its verb.
    """
    lead = _LEAD.match(hidden)
    start = lead.end() if lead else 0
    words = list(_WORD.finditer(hidden, start))
    at = _first_verb([word[0].replace("’", "'") for word in words[: _MOST_WORDS + 1]], first)
    if not at:
        return None
    opening = words[0][0].lower()
    if opening in _SUBORDINATORS or opening in PREPOSITIONS or opening in _NOT_SUBJECTS - {"it", "this"}:
        return None
    phrase = _without_apposition(clause[start : words[at].start()], hidden[start : words[at].start()])
    if not phrase or not set(phrase.lower().split()).isdisjoint(_SUBORDINATORS):
        return None
    following = words[at + 1][0] if at + 1 < len(words) else ""
    if following.endswith("ly") and at + 2 < len(words):
        following = words[at + 2][0]
    is_be = words[at][0] in BE
    passive = is_be and (following.endswith(("ed", "born")) or following in _PARTICIPLES)
    return Subject(phrase, words[at].start(), lead is not None, passive, is_be)


def _first_verb(words: list[str], may_be_noun: bool) -> int:
    """Where the first finite verb of some words is; 0 if that is not plain.

    What ends like a past form before it may be the verb itself, and the verb found a participle: then it is not plain.
    """
    for at, word in enumerate(words):
        is_infinitive = at > 0 and words[at - 1] in ("to", "the", "a", "an", "of")
        if word in FINITE and not is_infinitive and (word in PLAIN_VERBS or (may_be_noun and at < 3)):
            return at
        if at and word.islower() and (word.endswith("ed") or is_irregular_past(word) or word in FINITE):
            return 0
    return 0


_PARTICIPLES = words_of("built written made sold held won known found led sung taught brought drawn given taken sent")


def _without_apposition(phrase: str, hidden: str) -> str:
    """A subject without its brackets and without what commas enclose behind it; empty if it is a list."""
    kept = "".join(own for own, seen in zip(phrase, hidden, strict=True) if seen != "_" or own == "_")
    kept = " ".join(kept.split())
    words = kept.split()
    while words and words[-1].lower().endswith(
        ("ly", "also", "most", "still", "later", "then", "first", "soon", "never")
    ):
        words.pop()
    kept = " ".join(words)
    if "," not in kept:
        return kept
    head, _, rest = kept.partition(",")
    is_enclosed = kept.endswith(",") and kept.count(",") == 2
    return head if is_enclosed and not re.search(r"\band\b", head) and rest.strip() else ""


def refers_to(pronoun: str, subject: Subject, clause: str) -> bool:
    """Whether a pronoun at the beginning of the next clause can only stand for this clause's subject."""
    text = subject.text
    if text.lower() in (pronoun, _OF_OWNER.get(pronoun)):
        return True
    is_plural = " and " in text or text.lower().startswith(("they", "these", "both"))
    if pronoun in ("they", "their"):
        return is_plural
    own = set(text.split())
    others = [name for name in names_of(clause) if own.isdisjoint(name.text.split())]
    if is_plural or text.lower() in ("i", "we", "you", "he", "she", "it", "they", "this"):
        return False
    if pronoun in _SINGULAR:
        is_name = all(word[:1].isupper() or word in ("de", "la", "van", "von", "of", "der") for word in text.split())
        return is_name and not text.startswith("The ") and not any(name.may_be_person for name in others)
    if text[0].islower() or _MANY.match(text) or not PREPOSITIONS.isdisjoint(text.split()):
        return False
    return not others or text.startswith(("The ", "This "))


_MANY = re.compile(r"(?:Some|Many|Several|All|Most|Few|No|Two|Three|Four|Five|Both|.*\b[a-z]+(?<![sui])s$)")
_OF_OWNER = {"his": "he", "her": "she", "its": "it", "their": "they"}
