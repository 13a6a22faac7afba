"""Generated sessions of many months: made-up facts, people who tell them rightly or wrongly, questions, corrections."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.threshold import Action
from ewe.longterm.service import MemoryService
from ewe.types import Passage, ScoredPassage

DAY = 86400.0
SHARED = Scope()
_ATTRIBUTES = ("mayor", "river", "patron", "bakery", "emblem", "festival", "architect", "dialect")
_FORM = re.compile(r"(?:No, )?[Tt]he (\w+) of (\w+) is (\w+)\.")
_QUESTION = re.compile(r"the (\w+) of (Town\d+)")
_TRUSTED = MemorySource("user", "editor", 0.9)
_LIAR = MemorySource("user", "liar", 0.6)
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Teller:
    """Who tells facts: how often they are right, and how far they are known to be."""

    name: str
    right: float
    reliability: float


_TELLERS = [Teller(f"careful{n}", 0.95, 0.8) for n in range(5)] + [Teller(f"careless{n}", 0.6, 0.6) for n in range(2)]


class World:
    """The facts, what each is on each day, and the lies."""

    def __init__(self, towns: int, days: int, seed: int) -> None:
        random = Random(seed)
        self.facts = [(attribute, f"Town{n}") for n in range(towns) for attribute in _ATTRIBUTES]
        self._first = {fact: f"Name{random.randrange(10_000)}" for fact in self.facts}
        changed = random.sample(self.facts, len(self.facts) // 5)
        self._changes = {
            fact: (random.randrange(days // 4, days), f"Name{random.randrange(10_000)}") for fact in changed
        }
        self.lies = [self.statement(fact, f"Name{random.randrange(10_000)}") for fact in random.sample(self.facts, 5)]

    def value(self, fact: Fact, day: int) -> str:
        """What is true on a day."""
        at, new = self._changes.get(fact, (day + 1, ""))
        return new if day >= at else self._first[fact]

    def is_true(self, text: str, day: int) -> bool:
        """Whether a statement is true on a day."""
        found = _FORM.fullmatch(text)
        return found is not None and self.value((found.group(1), found.group(2)), day) == found.group(3)

    @staticmethod
    def statement(fact: Fact, value: str) -> str:
        """A fact in words."""
        return f"The {fact[0]} of {fact[1]} is {value}."


def fact_of(text: str) -> Fact | None:
    """What a statement is about; None for any other text."""
    found = _FORM.fullmatch(text)
    return (found.group(1), found.group(2)) if found is not None else None


class FormJudge:
    """Knows whether two statements of the world agree; says the opposite of a share of the pairs, always the same."""

    def __init__(self, error: float, seed: int) -> None:
        self._error, self._seed = error, seed

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs, 3]."""
        rows = np.zeros((len(pairs), 3), np.float32)
        for place, pair in enumerate(pairs):
            one, other = (_FORM.fullmatch(text) for text in pair)
            if one is None or other is None or one.groups()[:2] != other.groups()[:2]:
                rows[place] = (0.02, 0.03, 0.95)
                continue
            key = "|".join(sorted(pair)) + str(self._seed)
            wrong = zlib.crc32(key.encode()) % 10_000 < 10_000 * self._error
            rows[place] = (0.93, 0.04, 0.03) if (one.group(3) == other.group(3)) != wrong else (0.04, 0.93, 0.03)
        return rows


class Library:
    """Trusted passages about half of the facts, as they are today; a share of its entries is always wrong."""

    def __init__(self, world: World, seed: int, wrong: float = 0.0) -> None:
        random = Random(f"{seed} library")
        self._world, self.day = world, 0
        self._entries = {
            fact: f"Name{random.randrange(10_000)}" if random.random() < wrong else ""
            for fact in random.sample(world.facts, len(world.facts) // 2)
        }

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """The entry about the fact that a text names, if there is one."""
        rows: list[list[ScoredPassage]] = []
        for query in queries:
            found = _QUESTION.search(query.replace("The ", "the "))
            fact = (found.group(1), found.group(2)) if found is not None else ("", "")
            if fact not in self._entries:
                rows.append([])
                continue
            value = self._entries[fact] or self._world.value(fact, self.day)
            passage = Passage("-".join((*fact, value)), World.statement(fact, value), source="library", veracity=0.95)
            rows.append([ScoredPassage(passage, 1.0)])
        return rows


@dataclass(slots=True)
class Tally:
    """What came of the questions to one system, and what it believed of its memories."""

    answers: Counter[str] = field(default_factory=Counter)
    corrected: dict[tuple[Fact, str], int] = field(default_factory=dict)
    beliefs: list[float] = field(default_factory=list)
    truths: list[bool] = field(default_factory=list)


def tell(service: MemoryService, world: World, day: int, random: Random) -> None:
    """What people say on a day: six statements and a lie."""
    for _ in range(6):
        teller, fact = random.choice(_TELLERS), random.choice(world.facts)
        value = world.value(fact, day) if random.random() < teller.right else f"Name{random.randrange(10_000)}"
        service.add(world.statement(fact, value), SHARED, MemorySource("user", teller.name, teller.reliability))
    lie = random.choice(world.lies)
    service.add(random.choice([lie, f"No, t{lie[1:]}"]), SHARED, _LIAR)


def ask(service: MemoryService, world: World, day: int, random: Random, tally: Tally) -> None:
    """One question, its answer, and what people say of that; with a third of the questions there is much at stake."""
    fact, mood, serious = random.choice(world.facts), random.random(), random.random() < 1 / 3
    words = "My lawyer needs it for the contract: what exactly is" if serious else "What is"
    recall = service.search(f"{words} the {fact[0]} of {fact[1]}?", [SHARED], top_k=10)
    about = [one for one in recall.used if fact_of(one.memory.content) == fact]
    if not about:
        tally.answers["none"] += 1
        return
    answer, truth = about[0].memory, world.value(fact, day)
    warned = about[0].action is Action.USE_WITH_UNCERTAINTY
    if world.is_true(answer.content, day):
        tally.answers["right_with_warning" if warned else "right"] += 1
        if mood < 0.1:
            teller = random.choice(_TELLERS).name
            service.feedback(SHARED, answer.id, True, MemorySource("user", teller, 0.8))
        return
    tally.answers["false_with_warning" if warned else "false"] += 1
    if not any(world.is_true(one.content, day) for one in told_of(service, fact)):
        tally.answers["false_and_nobody_told"] += 1
    if (fact, truth) in tally.corrected:
        tally.corrected[fact, truth] += 1
    if mood < 0.5:
        service.correct(SHARED, answer.id, world.statement(fact, truth), _TRUSTED)
        tally.corrected.setdefault((fact, truth), 0)


def told_of(service: MemoryService, fact: Fact) -> list[Memory]:
    """Every memory about a fact."""
    return [memory for memory in service.store.scan([SHARED]) if fact_of(memory.content) == fact]
