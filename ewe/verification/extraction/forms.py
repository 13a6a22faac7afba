"""Forms that a clause takes when it becomes a statement: owners, "was" before a participle, subjects of -ing forms.

Owns: those forms. Knows words and the word lists; no clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ewe.verification.extraction.lists import WHOLE_CLAUSE, WITH_PRONOUN
from ewe.verification.extraction.words import Tag, Word, put_in
from ewe.verification.wordlists import words_of

PRESENT = words_of("is are has have does do am")
_LASTING = words_of("known based located considered regarded called recognized situated named")


def owner_of(phrase: Sequence[Word]) -> list[Word]:
    """A noun phrase as the owner of what follows ("Smith's")."""
    last = phrase[-1]
    ending = "'" if last.text.endswith("s") else "'s"
    return [*phrase[:-1], replace(last, text=last.text + ending, possessive=True)]


def speaks_of_clause(head: Word, rest: Sequence[Word]) -> bool:
    """Whether an -ing form speaks of all that is said before it ("leading to his arrest", "making it famous")."""
    follows = rest[0].tag if rest else None
    if head.norm in WHOLE_CLAUSE or (head.norm == "leading" and follows is Tag.TO):
        return True
    return head.norm in WITH_PRONOUN and follows is Tag.PRONOUN


def be_before(participle: Word, host: Sequence[Word], subject: Sequence[Word]) -> Word:
    """The form of "be" that makes a participle a verb, in the tense of the verb `host`."""
    present = any(word.norm in PRESENT or word.tag is Tag.THIRD for word in host) and participle.norm in _LASTING
    plural = any(word.norm in ("are", "were") for word in host) or any(word.norm == "they" for word in subject)
    return put_in(("are" if plural else "is") if present else ("were" if plural else "was"), Tag.BE)


def borrowed_subject(subject: Sequence[Word]) -> list[Word]:
    """A subject for another clause: without brackets, and without an apposition behind a name."""
    found: list[Word] = []
    depth = 0
    for word in subject:
        depth += word.tag is Tag.OPEN
        if depth == 0:
            if word.tag is Tag.COMMA and found and found[-1].tag in (Tag.NAME, Tag.QUOTE) and not _lists(subject):
                break
            found.append(word.borrowed())
        depth -= word.tag is Tag.CLOSE
    return found


def _lists(subject: Sequence[Word]) -> bool:
    return any(word.tag is Tag.AND for word in subject)
