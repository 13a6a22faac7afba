"""The names of a text in order, and which of them may be a person's."""

import re
from dataclasses import dataclass

from ewe.text.english import FUNCTION_WORDS, MONTHS, WEEKDAYS, words_of

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_LINK = re.compile(
    r" (?:of|of the|de|de la|la|le|du|del|della|di|da|von|van|van der|van den|zu|bin|ibn|al|el|and the) (?=\w)"
)
_PLACE_WORDS = words_of(
    "in at near from on inside outside around across through into throughout within since during until"
)
_THINGS = words_of(
    """university college school institute academy bridge tower palace castle cathedral church abbey museum station
    airport stadium park street river lake mountain mount sea ocean island islands valley bay city town county district
    province republic kingdom empire state states union war battle revolution treaty prize award medal company
    corporation group bank party league club band orchestra film album song book novel newspaper times journal magazine
    act law house hall hotel theatre theater center centre society association council court committee army navy
    airlines railway bowl bowls cup championship championships olympics games brotherhood movement ministry agency
    language languages constitution regatta tournament medal medals"""
)
_GOAL = re.compile(
    r"\b(?:moved|went|returned|travell?ed|came|emigrated|immigrated|migrated|sailed|fled|relocated|sent|brought|exiled)"
    r" (?:\w+ )?to (?:the )?\Z"
)
_OPENERS = words_of(
    """who what when where tell write describe explain give please say name list was is did do in on at by during
    after before since until although while because if as from with under despite according however"""
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is written; before, after: the words next to it in lower case, empty at an edge or a mark.

    is_goal: whether it is where somebody moves ("moved to Rome").
    """

    text: str
    start: int
    end: int
    before: str = ""
    after: str = ""
    is_goal: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Its words without articles."""
        return tuple(word for word in self.text.split() if word.lower() not in ("the", "of"))

    @property
    def is_thing(self) -> bool:
        """Whether a word of it names a kind of thing or place."""
        return any(word.lower() in _THINGS for word in self.words) or self.text.startswith(("the ", "The "))

    @property
    def may_be_person(self) -> bool:
        """Whether nothing shows that it names a thing, a place, a date or (before a noun) a nationality."""
        one_word_of_noun = len(self.words) == 1 and bool(self.after) and self.after not in FUNCTION_WORDS
        return not (self.is_thing or self.is_goal or self.before in _PLACE_WORDS or one_word_of_noun)


def names_of(text: str) -> list[Name]:
    """The names of a text in order; months, weekdays and a capitalised first word of the sentence are none."""
    names = []
    words = list(_WORD.finditer(text))
    at = 0
    while at < len(words):
        if not _is_capital(words[at], at == 0 or _opens(text, words[at].start())):
            at += 1
            continue
        last = at
        while last + 1 < len(words) and _goes_on(text, words[last], words[last + 1 : last + 4]):
            last += _goes_on(text, words[last], words[last + 1 : last + 4])
        first = words[at].start()
        end = words[last].end()
        name = text[first:end]
        if at and words[at - 1][0].lower() == "the" and text[words[at - 1].end() : first] == " ":
            name, first = f"the {name}", words[at - 1].start()
        name = re.sub(r"['’]s$", "", name)
        before = at - 1 if not name.startswith("the ") else at - 2
        sides = _beside(text, words, before, first), _beside(text, words, last + 1, end)
        is_goal = _GOAL.search(text[max(0, first - 40) : first]) is not None
        names.append(Name(name, first, first + len(name), *sides, is_goal))
        at = last + 1
    return names


def _is_capital(word: re.Match[str], opens: bool) -> bool:
    low = word[0].lower()
    if not word[0][0].isupper() or low in MONTHS or low in WEEKDAYS or low == "i":
        return False
    return not (low in FUNCTION_WORDS or (opens and low in _OPENERS))


def _goes_on(text: str, word: re.Match[str], following: list[re.Match[str]]) -> int:
    """How many words further the name goes on; 0 if it ends here."""
    if not following or word[0].endswith(("'s", "’s")):
        return 0
    gap = text[word.end() : following[0].start()]
    is_initial = len(word[0]) == 1 or "." in word[0] or word[0] in ("Dr", "Mr", "Mrs", "Ms", "St")
    if (gap in (" ", "-") or (gap == ". " and is_initial)) and following[0][0][0].isupper():
        return 1 if following[0][0].lower() not in MONTHS else 0
    if gap == " " and following[0][0].isdigit() and word[0][0].isupper():
        return 1  # "Route 29", "Flight 825"
    link = _LINK.match(text, word.end())
    if link is None or gap != " ":
        return 0
    steps = len(link[0].split())
    return steps + 1 if steps < len(following) and following[steps][0][0].isupper() else 0


def _opens(text: str, start: int) -> bool:
    """Whether a sentence or a quotation begins at `start`."""
    return re.search(r"(?:\A|[.!?:\n]\s*)[\s\"“'*(-]*\Z", text[max(0, start - 8) : start]) is not None


def _beside(text: str, words: list[re.Match[str]], at: int, edge: int) -> str:
    """The word next to a name, in lower case; empty where a mark stands between."""
    if not 0 <= at < len(words):
        return ""
    word = words[at]
    gap = text[word.end() : edge] if word.end() <= edge else text[edge : word.start()]
    return word[0].lower() if gap == " " else ""
