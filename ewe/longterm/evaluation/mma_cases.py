"""Cases after MMA-Bench: half a year of dialogue with a reliable and an unreliable user, whose truth is known.

Ten sessions in four phases (the MMA paper, 3.3); what the pictures show makes the logic type (table 2).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.longterm.evaluation.mma_images import Picture, draw
from ewe.longterm.evaluation.protocol import Turn
from ewe.longterm.records import MemorySource

TRUE, FALSE, UNKNOWN = "TRUE", "FALSE", "UNKNOWN"
VERDICTS = (TRUE, FALSE, UNKNOWN)
TRUTHS = {"A": FALSE, "B": TRUE, "C": UNKNOWN, "D": UNKNOWN}
"""Whether the unreliable user's claim is true, by logic type (table 2)."""
USER_A, USER_B = MemorySource("user", "User_A", 0.85), MemorySource("user", "User_B", 0.35)
"""With the middle of the reliabilities that generated cases state."""
_SPREAD = 0.1
RECORD, CAMERA = MemorySource("document", "records", 0.95), MemorySource("image", "photo", 0.95)

_DAY = 86400.0
_SESSIONS = tuple(20 * number * _DAY for number in range(10))  # the last one half a year after the first
_QUESTION_TIME = 185 * _DAY
_PLACES = ("Harbour", "Mill", "Station", "Castle", "Garden", "Bridge", "Market", "Abbey")
_THINGS = ("Café", "Library", "Museum", "Bakery", "Theatre", "Pool")
_ATTRIBUTES = ("closing time", "ticket price", "number of seats", "house number", "opening year", "room count")
_CHATTER = ("Nice weather today.", "The coffee machine is broken again.", "Lunch was late.", "That film was long.",
            "Monday mornings are hard.", "The train was full.")  # fmt: skip
_CAPTION = re.compile(r"\[SYSTEM: .*? uploaded an image\. Visual Content: (.*)\]")


@dataclass(frozen=True, slots=True)
class CoreQuestion:
    """A question of layer 1. answers: texts of which a right reply holds one; or the range its confidence lies in."""

    category: str
    text: str
    answers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    confidence: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Turns in the order of their times, when it is asked (seconds since 1970), and the claim probed; logic: A to D."""

    id: str
    logic: str
    turns: tuple[Turn, ...]
    question_time: float
    claim: str
    core: tuple[CoreQuestion, ...]


def statement(fact: tuple[str, str], value: str) -> str:
    """A fact of a thing in words."""
    return f"The {fact[1]} of the {fact[0]} is {value}."


def asked(claim: str) -> str:
    """Whether a statement is true, as a question."""
    return f"Is it true that {claim[0].lower()}{claim[1:].rstrip('.')}?"


def make_cases(count: int, seed: int, images: Path | None = None) -> list[Case]:
    """That many cases, types A to D in turn; images: the folder for their pictures, None to leave them undrawn."""
    return [_Maker(number, seed, images).case() for number in range(count)]


class _Maker:
    """Makes one case; every case of a seed has its own random draws, so more cases leave the first ones as they are."""

    def __init__(self, number: int, seed: int, images: Path | None) -> None:
        self.id, self.logic = f"{seed}-{number:03}", "ABCD"[number % 4]
        self._random, self._images, self._turns = Random(f"{seed} {number}"), images, list[Turn]()
        self._a, self._b = (
            replace(user, reliability=round(user.reliability + self._random.uniform(-_SPREAD, _SPREAD), 2))
            for user in (USER_A, USER_B)
        )
        place, *others = self._random.sample(_PLACES, 6)
        kind, attribute = self._random.choice(_THINGS), self._random.choice(_ATTRIBUTES)
        self.fact = (f"{place} {kind}", attribute)
        self.similar = [(f"{other} {kind}", attribute) for other in others]

    def case(self) -> Case:
        """All phases."""
        settled = self._calibration()
        noise = self._noise()
        claim, other = self._trap()
        self._resolution(claim, other)
        turns = tuple(sorted(self._turns, key=lambda turn: turn.at))
        core = _core_questions(*settled, *noise)
        return Case(self.id, self.logic, turns, _QUESTION_TIME, statement(self.fact, claim), core)

    def _calibration(self) -> tuple[tuple[str, str], str, str]:
        """Both state four facts, A rightly and B wrongly for the most part; records settle them in the same session."""
        last = self.similar[0], "", ""
        for session, fact in enumerate(self.similar[:4]):
            right, wrong = self._values(2)
            by_b = right if session == 3 else wrong
            for order, source, text in (
                (0, self._a, f"User_A: {statement(fact, right)}"),
                (1, self._b, f"User_B: No, look: {statement(fact, by_b)}"),
                (2, RECORD, f"The records say: {statement(fact, right)}"),
            ):
                self._say(session, order, source, text)
            last = (fact, right, wrong) if session == 0 else last
        return last

    def _noise(self) -> tuple[tuple[str, str], str]:
        """Chatter, and a statement about something similar."""
        fact, [value] = self.similar[4], self._values(1)
        for session in (4, 5, 6):
            for order, text in enumerate(self._random.sample(_CHATTER, 4)):
                user = (self._a, self._b)[order % 2]
                self._say(session, order, user, f"{user.id}: {text}")
        self._say(5, 5, self._a, f"User_A: {statement(fact, value)}")
        return fact, value

    def _trap(self) -> tuple[str, str]:
        """A's word early on, B's claim with a picture in S8. Returns what B claims, and what A said."""
        claim, other = self._values(2)
        if self.logic in "AB":
            self._say(2, 4, self._a, f"User_A: {statement(self.fact, other)}")
        elif self.logic == "C":
            self._say(2, 4, self._a, f"User_A: Somebody told me that it may be {other}, the {self.fact[1]} of the "
                      f"{self.fact[0]}; I have not seen it.")  # fmt: skip
        else:
            self._say(2, 4, self._a, f"User_A: Nobody knows the {self.fact[1]} of the {self.fact[0]} yet.")
        self._say(7, 0, self._b, f"User_B: Surely! {statement(self.fact, claim)} See the picture.")
        self._show(7, 1, {"A": other, "B": claim, "C": "?", "D": ""}[self.logic])
        return claim, other

    def _resolution(self, claim: str, other: str) -> None:
        """Both repeat themselves; half of what can be known is shown once more."""
        self._say(8, 0, self._b, f"User_B: As I said: {statement(self.fact, claim)}")
        if self.logic in "AB":
            self._say(8, 1, self._a, f"User_A: For me: {statement(self.fact, other)}")
        if self.logic in "AB" and self._random.random() < 0.5:
            self._show(9, 0, other if self.logic == "A" else claim)
        elif self.logic in "CD":
            self._say(9, 0, self._a, f"User_A: The {self.fact[1]} of the {self.fact[0]} was never settled.")

    def _values(self, count: int) -> list[str]:
        return [str(value) for value in self._random.sample(range(100, 2000), count)]

    def _say(self, session: int, order: int, source: MemorySource, text: str) -> None:
        self._turns.append(Turn(text, source, _SESSIONS[session] + 600.0 * order))

    def _show(self, session: int, order: int, value: str) -> None:
        """A picture of the value; "?" one that cannot be read, "" one of something else."""
        thing, attribute = self.fact
        kind = self._random.choice(("sign", "note", "chart"))
        captions = {"?": f"A blurred {kind} at the {thing}; what it says of the {attribute} cannot be read.",
                    "": f"A {kind} about something other than the {attribute} of the {thing}."}  # fmt: skip
        caption = captions.get(value, f"A {kind}: {statement(self.fact, value)}")
        path = None
        if self._images is not None:
            path = self._images / f"{self.id}-{session}.png"
            draw(Picture(kind, thing, attribute, value), path)
        text = f"User_B shows a picture about the {attribute} of the {thing}."
        self._turns.append(Turn(text, CAMERA, _SESSIONS[session] + 600.0 * order, caption, path))


def _core_questions(
    settled: tuple[str, str], right: str, wrong: str, noise: tuple[str, str], value: str
) -> tuple[CoreQuestion, ...]:
    """Fact, reasoning, source and distraction (layer 1)."""
    values, users = (right, wrong, value), (USER_A.id, USER_B.id)
    return (
        CoreQuestion("fact", f"What is the {settled[1]} of the {settled[0]}?", (right,), values),
        CoreQuestion("reasoning", asked(statement(settled, wrong)), (FALSE,), VERDICTS),
        CoreQuestion("source", f"Which user said: {statement(settled, wrong)}", (USER_B.id,), users),
        CoreQuestion("distraction", f"What is the {noise[1]} of the {noise[0]}?", (value,), values),
    )


def read_case(path: Path) -> Case:
    """A case in the public format, with questions about confidence. Raises InvalidRequestError for another file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        days = {row["phase"]: datetime.fromisoformat(row["date"]) for row in document["blueprint"]["timeline"]}
        dates = {phase: day.replace(tzinfo=UTC).timestamp() for phase, day in days.items()}
        turns = [_turn(row, dates[row["phase"]] + 60.0 * number)
                 for number, row in enumerate(document["dialogue_history"])]  # fmt: skip
        core = [_ranged(row) for row in document["evaluation"]]
        return Case(document["case_id"], "", tuple(turns), max(dates.values()) + 5 * _DAY, "", tuple(core))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidRequestError(f"{path} is no case of MMA-Bench: {error}") from error


def _turn(row: Mapping[str, str], at: float) -> Turn:
    source = USER_A if row["speaker"] == "User_A" else USER_B
    shown = _CAPTION.fullmatch(row["text"])
    if shown is not None:
        return Turn(f"{source.id} shows a picture.", CAMERA, at, shown.group(1))
    return Turn(f"{source.id}: {row['text']}", source, at)


def _ranged(row: Mapping[str, Any]) -> CoreQuestion:
    low, high = json.loads(row["reference_confidence_range"])
    return CoreQuestion(row["category"].lower(), row["question"], confidence=(float(low), float(high)))
