"""A verb as it stands after "and": whether it can be a finite verb, or a participle that shares an auxiliary."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ewe.text.english import DETERMINERS, PREPOSITIONS, words_of
from ewe.verification.extraction.verbs import AUXILIARY_FORMS, FINITE, INTRANSITIVE, PARTICIPLES, TRANSITIVE

ADVERBS = words_of(
    "later then also subsequently eventually soon finally first never still now often initially originally"
)
ARTICLES = DETERMINERS - words_of("some any no that those this these")
_COPULAS = words_of("became becomes become remained")
_PLACES = words_of("there together away back out up")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_REACH = 200  # Code points in which the verb and the words after it are looked for.


@dataclass(frozen=True, slots=True)
class VerbForm:
    """What may be a verb; following: the word after it; by_agent: whether "by" comes next, as after a passive."""

    word: str
    following: str
    by_agent: bool

    @property
    def is_auxiliary(self) -> bool:
        """Whether it is a form of be, have or do, or a modal verb."""
        return self.word in AUXILIARY_FORMS

    @property
    def has_object(self) -> bool:
        """Whether what follows opens an object: an article, a name or a number."""
        return self.following[:1].isupper() or self.following[:1].isdigit() or self.following.lower() in ARTICLES

    @property
    def is_active(self) -> bool:
        """Whether it is a finite verb in the active voice, as far as what follows shows."""
        is_both = self.word in INTRANSITIVE and self.word in TRANSITIVE
        fits = self.word in (TRANSITIVE if self.has_object else INTRANSITIVE)
        return self._goes_on and not self.by_agent and (is_both or fits or self.word in _COPULAS)

    @property
    def is_participle(self) -> bool:
        """Whether it is a participle after the "was" of a verb before it."""
        is_passive = self.word in PARTICIPLES and not self.has_object
        return is_passive and (self.by_agent or self.word not in INTRANSITIVE)

    @property
    def _goes_on(self) -> bool:
        """Whether what follows belongs to a verb, and does not make the form an adjective ("painted furniture")."""
        adverb = self.following.endswith("ly") or self.following in ADVERBS | _PLACES
        is_last = not self.following and self.word in INTRANSITIVE
        return self.has_object or adverb or is_last or self.following in PREPOSITIONS


def verb_form(hidden: str, start: int) -> VerbForm | None:
    """The form that begins at a place of a masked sentence, behind one adverb at most; None if it is not known."""
    words = [word[0] for word in _WORD.finditer(hidden[start : start + _REACH])]
    words = words[1:] if words and words[0] in ADVERBS else words
    if not words or words[0] not in FINITE | PARTICIPLES:
        return None
    following = words[1] if len(words) > 1 else ""
    agent = following == "by" or (following.endswith("ly") and words[2:3] == ["by"])
    return VerbForm(words[0], following, agent)
