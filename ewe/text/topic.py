"""What texts are about: their content words as stems, their names, and whether a passage is about what is asked."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ewe.text.english import FUNCTION_WORDS, stem
from ewe.text.search_text import IN_ANY_QUESTION, subject_of
from ewe.text.words import words
from ewe.types import Passage

ABOUT = 0.5
"""Share of the names of what is asked about that a text must have to be about it."""


def stems_of(text: str) -> AbstractSet[str]:
    """The stems of the words that are not in any question."""
    return {stem(word) for word in words(text) if word not in IN_ANY_QUESTION}


def names_of(text: str) -> AbstractSet[str]:
    """The stems of capitalised words; the first word of a sentence is one unless it is a function word.

    A single letter is a name only where nothing else is: of "M-82" the number is.
    """
    written = [part for part in text.split() if part.lstrip("\"'“‘(")[:1].isupper()]
    names = {stem(word) for word in words(" ".join(written)) if word not in FUNCTION_WORDS}
    return {name for name in names if len(name) > 1 or name.isdigit()} or names


def share_of(required: AbstractSet[str], there: AbstractSet[str]) -> float:
    """The share of the required words that are there, 0 where none is required."""
    return len(required & there) / len(required) if required else 0.0


def is_about(passage: Passage, question: str, written: str) -> bool:
    """Whether a passage names what the question names, or has a subject that is named in what was written.

    A question without names may be about anything; the first word of one that is asked with a verb is none.
    """
    subject = subject_of(question)
    names = names_of(subject if subject != question else subject.partition(" ")[2])
    if not names or share_of(names, stems_of(f"{passage.title} {passage.text}")) >= ABOUT:
        return True
    title = names_of(passage.title)
    return bool(title) and title <= stems_of(written)
