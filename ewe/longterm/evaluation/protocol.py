"""What a memory system is in an evaluation: what it is told, what it is asked, and what it replies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewe.longterm.recall import Recalled
from ewe.longterm.records import MemorySource


@dataclass(frozen=True, slots=True)
class Turn:
    """What is said, by whom and when (seconds since 1970), with an image, if any, and what it shows in words."""

    text: str
    source: MemorySource
    at: float
    caption: str = ""
    image: Path | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, when (seconds since 1970), and how to answer (form). truth: known to oracle and grader only.

    choices: what a coin chooses from. only: "text" or "image" leaves out memories of the other kind.
    """

    text: str
    at: float
    truth: str
    choices: tuple[str, ...]
    form: str = ""
    only: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what was recalled for it, best first; weighed: whether a model is told how far it is believed."""

    question: Question
    recalled: tuple[Recalled, ...]
    weighed: bool = True

    @property
    def confidence(self) -> float:
        """The greatest belief among what was recalled, in [0, 1]; 0 where nothing was."""
        return max((one.belief for one in self.recalled), default=0.0)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system said, its confidence in [0, 1], and what it had recalled."""

    text: str
    confidence: float
    recalled: tuple[Recalled, ...] = ()


Answerer = Callable[[Sequence[Asked]], Sequence[str]]
"""A model or an exact reader: one text per question; nonsense and errors are texts as well, and scored as such."""


class MemorySystem:
    """Remembers turns and answers questions about them; this one remembers nothing."""

    name: str

    def begin(self, item: str) -> None:
        """From here on everything belongs to this item; nothing of another one is remembered."""

    def remember(self, turn: Turn) -> None:
        """Takes in one turn; turns come in the order of their times."""

    def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question."""
        raise NotImplementedError
