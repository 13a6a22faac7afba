"""Exact grading of answers: what facts a text states, and which of them are true in the world."""

from dataclasses import dataclass

from ewe.evaluation.world.people import Fact
from ewe.evaluation.world.world import World, WorldPrompt
from ewe.evaluation.world.world_grammar import read_sentence, sentences_of


@dataclass(frozen=True, slots=True)
class SentenceGrade:
    """One sentence with the facts it states; nothing was understood if there are none."""

    text: str
    true: tuple[Fact, ...]
    false: tuple[Fact, ...]

    @property
    def parsed(self) -> bool:
        """Whether the sentence was understood."""
        return bool(self.true or self.false)


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer states, each fact once; requested: the facts that the prompt asks for, all of them true."""

    sentences: tuple[SentenceGrade, ...]
    requested: frozenset[Fact]

    @property
    def true(self) -> frozenset[Fact]:
        """The true facts stated."""
        return frozenset(fact for sentence in self.sentences for fact in sentence.true)

    @property
    def false(self) -> frozenset[Fact]:
        """The false facts stated."""
        return frozenset(fact for sentence in self.sentences for fact in sentence.false)

    @property
    def unparsed(self) -> tuple[str, ...]:
        """The sentences that were not understood."""
        return tuple(sentence.text for sentence in self.sentences if not sentence.parsed)

    @property
    def coverage(self) -> float:
        """Share in [0, 1] of the facts asked for that the answer states."""
        return len(self.true & self.requested) / len(self.requested)


def grade(world: World, prompt: WorldPrompt, text: str) -> Grade:
    """Reads an answer and compares what it states with the world.

    A pronoun stands for the person named last (the prompt's first subject at the start), a surname for that person
    or a subject of the prompt. What is said of a person whom the world does not know is false.
    """
    current = prompt.subjects[0]
    sentences = []
    for _, sentence in sentences_of(text):
        reading = read_sentence(sentence, prompt.subjects, current)
        current = reading.subject
        true = tuple(fact for fact in reading.facts if fact in world.facts)
        false = tuple(fact for fact in reading.facts if fact not in world.facts)
        sentences.append(SentenceGrade(sentence, true, false))
    return Grade(tuple(sentences), frozenset(prompt.facts))
