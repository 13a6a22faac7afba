"""What names and pronouns stand for, from the text before them."""

from collections.abc import Callable

from ewe.text.english import PERSONAL
from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, NameKind
from ewe.verification.value_comparison.values import Agreement, Name


class Discourse:
    """The names of a text as it is read sentence by sentence.

    topic: what the text is about (a passage's title, the prompt's subject); it is the subject at hand until another
    sentence subject takes over.
    """

    def __init__(self, topic: Name | None = None) -> None:
        self._focus = topic
        self._opened = False
        self._names: list[Name] = [topic] if topic else []
        self._first = topic
        self._people: set[tuple[str, ...]] = set()

    @property
    def focus(self) -> Name | None:
        """The subject at hand, with all that has been learnt of it."""
        focus = self._focus
        return next((name for name in self._names if focus is not None and name.words == focus.words), focus)

    @focus.setter
    def focus(self, name: Name | None) -> None:
        self._focus = name

    def begin_sentence(self) -> None:
        """Note that what is read from now on is a new sentence."""
        self._opened = False

    def open_with(self, name: Name) -> None:
        """Make `name` the subject at hand: it is the subject of the sentence being read."""
        self._focus = name
        self._opened = True

    @property
    def first(self) -> Name | None:
        """The name met first."""
        return self._first

    def full(self, name: Name) -> Name:
        """The name met before of which `name` is a short form ("Curie" after "Marie Curie"), or itself.

        The subject at hand goes first, then what the text began with, then the last one met.
        """
        for known in (self.focus, self._first, *reversed(self._names)):
            if known is None:
                continue
            longer = len(known.words) > len(name.words) and name.words[-1] in (known.words[-1], known.words[0])
            if longer and name.compare(known) is Agreement.EQUAL and set(name.words) <= set(known.words):
                return known
        return name

    def notice(self, name: Name) -> Name:
        """Remember a name and return its full form; a kind that was learnt before is kept, and the other way round."""
        name = self.full(name)
        for index in range(len(self._names) - 1, -1, -1):
            if self._names[index].words == name.words:
                known = self._names.pop(index)
                if name.kind is NameKind.UNKNOWN:
                    name = known
                break
        self._names.append(name)
        self._first = self._first or name
        return name

    def is_person(self, name: Name) -> bool:
        """Whether the text has treated `name` as a person."""
        return name.kind is NameKind.PERSON or name.words in self._people

    def mark_person(self, name: Name) -> None:
        """Remember that `name` does or has what only people do or have."""
        if name.kind in (NameKind.UNKNOWN, NameKind.PERSON):
            self._people.add(name.words)

    def pronoun(self, word: str) -> Name | None:
        """Whom or what a folded pronoun means: the subject at hand if it fits, else the last name that does."""
        if word in PERSONAL or word.startswith("the"):  # they, them, their; "they" is often one person
            focus = self.focus
            if focus is not None and not self.is_person(focus):
                may_be = focus.kind is NameKind.UNKNOWN
                focus = focus if may_be and (self._opened or not self._people) else self._last(self.is_person)
            found = focus or self._last(lambda name: name.kind is NameKind.UNKNOWN)
            if found is not None and word in PERSONAL:
                self.mark_person(found)
            return found or self.focus
        return self._last(lambda name: not self.is_person(name), self.focus)

    def definite(self, noun: str) -> Name | None:
        """What "the <noun>" means: the last name of that kind, best with that very noun in it."""
        kind = KIND_OF_NOUN.get(noun)
        if kind is None or kind is NameKind.PERSON:
            return None
        by_word = self._last(lambda name: noun in name.words)
        return by_word or self._last(lambda name: name.kind is kind)

    def _last(self, fits: Callable[[Name], bool], first: Name | None = None) -> Name | None:
        """`first` if it fits, else the last name met that does."""
        if first is not None and fits(first):
            return first
        return next((name for name in reversed(self._names) if fits(name)), None)
