"""VeriMem's tasks, generated: who says what of made-up places, what is true, and what is asked (verimem-a.txt, 2.7)."""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.evaluation.protocol import Turn
from ewe.longterm.records import MemorySource
from ewe.types import Passage, ScoredPassage

DAY = 86400.0
_FORM = re.compile(r"the (\w+) of ([A-Z]\w+ [A-Z]\w+)", re.IGNORECASE)
_STATEMENT = re.compile(r"The (\w+) of ([A-Z]\w+ [A-Z]\w+) is (\w+)\.")
_ATTRIBUTES = ("owner", "river", "patron", "emblem", "founder", "dialect", "supplier", "warden")
_KINDS = ("Mill", "Hall", "Farm", "Quay", "Tower", "Abbey")
_ANN, _BEN = MemorySource("user", "ann", 0.8), MemorySource("user", "ben", 0.7)
_WEB, _AGENT = MemorySource("web", "forum", 0.5), MemorySource("model", "agent", 0.5)
_PAPER = MemorySource("web", "party paper", 0.6)
_WRONG_PAIRS, _LIBRARY, _WRONG_ENTRIES = 0.05, 0.5, 0.05

Fact = tuple[str, str]
"""An attribute and whose it is."""


@dataclass(slots=True)
class Task:
    """One item: turns, what is true in the end, what was told of it, and what is asked.

    groups: facts that belong together: a dimension of bias, the arguments of a tool call. biased: per fact what the
    biased source makes of it. bias_in: per group the share of what was said of it that is biased.
    """

    suite: str
    turns: list[Turn] = field(default_factory=list)
    truths: dict[Fact, str] = field(default_factory=dict)
    known: set[Fact] = field(default_factory=set)
    groups: list[list[Fact]] = field(default_factory=list)
    biased: dict[Fact, str] = field(default_factory=dict)
    bias_in: list[float] = field(default_factory=list)
    values: dict[Fact, list[str]] = field(default_factory=dict)


class _Teller:
    """Makes up facts and has them told, a turn each six hours."""

    def __init__(self, suite: str, seed: str) -> None:
        self.random, self.task = Random(seed), Task(suite)
        self._at = 0.0

    def word(self) -> str:
        """A name that nothing else has."""
        return "".join(self.random.choice("bdfgklmnprstv") + self.random.choice("aeiou") for _ in range(4)).title()

    def facts(self, count: int, place: str = "") -> list[Fact]:
        """New facts, each of a place of its own unless one is given; the first six are of six kinds of place."""
        attributes = self.random.sample(_ATTRIBUTES, count) if place else self.random.choices(_ATTRIBUTES, k=count)
        return [
            (attribute, f"{place or self.word()} {_KINDS[number % len(_KINDS)]}")
            for number, attribute in enumerate(attributes)
        ]

    def say(self, fact: Fact, source: MemorySource, true: bool = True, value: str = "") -> str:
        """Tells a new value, or this one; what is true takes the place of what was."""
        value = value or self.word()
        self._at += DAY / 4
        self.task.turns.append(Turn(statement(fact, value), source, self._at))
        self.task.values.setdefault(fact, []).append(value)
        if true:
            self.task.truths[fact] = value
            self.task.known.add(fact)
        return value


def statement(fact: Fact, value: str) -> str:
    """A fact in words."""
    return f"The {fact[0]} of {fact[1]} is {value}."


def fact_of(text: str) -> Fact | None:
    """The fact that a statement or a question is about."""
    match = _FORM.search(text)
    return None if match is None else (match.group(1), match.group(2))


def stated(text: str) -> tuple[Fact, str] | None:
    """The fact and value of a statement."""
    match = _STATEMENT.search(text)
    return None if match is None else ((match.group(1), match.group(2)), match.group(3))


def _dialogue(teller: _Teller) -> None:
    """Fifteen turns: ten facts, of which three are contradicted by hearsay, earlier or later, and two only hearsay."""
    facts = teller.facts(10)
    for place, fact in enumerate(facts):
        if place < 8:
            if place in (0, 1):
                teller.say(fact, _WEB, true=False)
            value = teller.say(fact, _ANN)
            if place in (2, 3):
                teller.say(fact, _AGENT, true=False)
            if place == 4:
                teller.say(fact, _BEN, value=value)
        else:
            teller.say(fact, _WEB, true=False)
            teller.task.truths[fact] = teller.word()


def _bias(teller: _Teller) -> None:
    """Three dimensions of four facts: a paper that favours its own names, louder in each, against two users."""
    for loud in (2, 3, 4):
        group, favourite, count = teller.facts(4), teller.word(), 0
        for place, fact in enumerate(group):
            if place < loud:
                teller.say(fact, _PAPER, true=False, value=favourite)
            teller.say(fact, _ANN if place % 2 else _BEN)
            if place < loud:
                teller.say(fact, _PAPER, true=False, value=favourite)
            count += 1 + 2 * (place < loud)
            teller.task.biased[fact] = favourite
        teller.task.groups.append(group)
        teller.task.bias_in.append(2 * loud / count)


def _updates(teller: _Teller) -> None:
    """Six facts that change once or twice, each among two of neighbours with nearly the same name that do not."""
    for place in range(6):
        name = teller.word()
        fact, *others = teller.facts(3, name)
        for other in others:
            teller.say((fact[0], other[1]), _BEN)
        for turn in range(2 + place % 2):
            teller.say(fact, _ANN if (turn + place) % 2 else _BEN)


def _tools(teller: _Teller) -> None:
    """Four tool calls with three arguments; hearsay contradicts one of each, and is all there is of one of the last."""
    for call in range(4):
        group = teller.facts(3)
        for place, fact in enumerate(group):
            if call == 3 and place == 2:
                teller.say(fact, _WEB, true=False)
                teller.task.truths[fact] = teller.word()
                continue
            teller.say(fact, _ANN)
            if place == call % 3:
                teller.say(fact, _AGENT if call % 2 else _WEB, true=False)
        teller.task.groups.append(group)


SUITES: Mapping[str, Callable[[_Teller], None]] = {
    "dialogue": _dialogue, "bias": _bias, "updates": _updates, "tools": _tools,
}  # fmt: skip


def make_tasks(count: int, seed: int) -> dict[str, Task]:
    """So many tasks of each suite, by name."""
    tasks = {}
    for number in range(count):
        for suite, tell in SUITES.items():
            teller = _Teller(suite, f"{seed} {suite} {number}")
            tell(teller)
            tasks[f"{suite}-{number:03}"] = teller.task
    return tasks


class Library:
    """Trusted passages: half of all facts, of which one in twenty is wrong."""

    def __init__(self, tasks: Mapping[str, Task], seed: int) -> None:
        random = Random(f"{seed} library")
        self._entries: dict[Fact, str] = {}
        for task in tasks.values():
            for fact, truth in task.truths.items():
                wrong = random.random() < _WRONG_ENTRIES
                if random.random() < _LIBRARY:
                    self._entries[fact] = truth[::-1].title() if wrong else truth

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """The entry about the fact that a text names, if there is one."""
        return [self._entry(fact_of(query)) for query in queries]

    def _entry(self, fact: Fact | None) -> list[ScoredPassage]:
        if fact is None or fact not in self._entries:
            return []
        text = statement(fact, self._entries[fact])
        return [ScoredPassage(Passage(" ".join(fact), text, source="library", veracity=0.95), 1.0)]


class FormJudge:
    """Knows whether two statements agree; says the opposite of one pair in twenty, always the same."""

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """float32 [pairs, 3]."""
        return np.array([self._row(*pair) for pair in pairs], np.float32).reshape(-1, 3)

    def _row(self, one: str, other: str) -> tuple[float, float, float]:
        left, right = stated(one), stated(other)
        if left is None or right is None or left[0] != right[0]:
            return (0.02, 0.03, 0.95)
        errs = zlib.crc32("|".join(sorted((one, other))).encode()) % 1000 < 1000 * _WRONG_PAIRS
        return (0.93, 0.04, 0.03) if (left[1] == right[1]) != errs else (0.04, 0.93, 0.03)
