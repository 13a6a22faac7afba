"""LoCoMo's conversations with their questions, and when a reply answers one."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from ewe.errors import InvalidRequestError
from ewe.evaluation.qa_questions import contains, normalised
from ewe.longterm.evaluation.protocol import Turn
from ewe.longterm.evaluation.selective_sets import locomo_sessions, locomo_turn

CATEGORIES = {1: "several hops", 2: "time", 3: "open", 4: "one hop", 5: "adversarial"}  # as the set numbers them
ADVERSARIAL = CATEGORIES[5]
Part = Literal["tuning", "held-out", "all"]

_TUNING = 3  # conversations that the weights of the search were tuned on
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_DATE = re.compile(
    rf"(?P<year>\b\d{{4}})-(?P<number>\d{{2}})(?:-(?P<day>\d{{2}}))?\b"
    rf"|(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+)?\b(?P<name>{_MONTH})\b\.?"
    rf"(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s*(?:of\s+)?(?P<later>\d{{4}})\b)?"
    rf"|\b(?P<alone>(?:19|20)\d{{2}})\b",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"\b(unknown|unanswerable|not (known|mentioned|stated|specified|told|given|clear|available|sure|provided)|no answer"
    r"|no (mention|information)|(do not|don't|does not|doesn't|cannot|can't) (know|say|tell|answer|mention|specify))\b",
    re.IGNORECASE,
)
Date = tuple[int | None, int | None, int | None]
"""Year, month, day; None where it is not said."""


@dataclass(frozen=True, slots=True)
class LoCoMoQuestion:
    """A question about one conversation; answer: empty where the conversation does not answer it."""

    id: str
    conversation: str
    text: str
    category: str
    answer: str


@dataclass(frozen=True, slots=True)
class LoCoMoConversation:
    """What was said, in the order of its times, when it ended (seconds since 1970), and what is asked."""

    id: str
    turns: tuple[Turn, ...]
    ended: float
    questions: tuple[LoCoMoQuestion, ...]


def read_conversations(path: Path, part: Part = "held-out") -> list[LoCoMoConversation]:
    """The conversations of the set's file; part: the three that the search was tuned on, the others, or all.

    Raises InvalidRequestError, which says where the set comes from.
    """
    if not path.exists():
        raise InvalidRequestError(
            f"{path} is missing: LoCoMo's conversations are data/locomo10.json of github.com/snap-research/locomo"
        )
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        conversations = [_conversation(row) for row in rows]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidRequestError(f"{path} is no file of LoCoMo's conversations: {error}") from error
    kept = {"tuning": conversations[:_TUNING], "held-out": conversations[_TUNING:], "all": conversations}[part]
    if not kept:
        raise InvalidRequestError(
            f"{path} holds {len(conversations)} conversations, none of them {part}: choose another --part"
        )
    return kept


def draw(conversations: Sequence[LoCoMoConversation], count: int | None, seed: int) -> list[LoCoMoQuestion]:
    """So many questions of all, in a drawn order (None: all of them); more begin with the same ones."""
    every = [question for one in conversations for question in one.questions]
    return Random(seed).sample(every, len(every))[:count]


def is_answered(question: LoCoMoQuestion, reply: str) -> bool:
    """Whether a reply holds the answer: its words side by side, or, where it is a date, that date in any spelling.

    Of a date what the answer says of year, month and day must be said; of "the week before 9 June 2023" the date alone
    is not enough: all its words must be there, too.
    """
    if contains(question.answer, reply):
        return True
    expected = list(dates(question.answer))
    rest = normalised(_DATE.sub(" ", question.answer)).split()
    if not expected or not set(rest) <= set(normalised(reply).split()):
        return False
    given = list(dates(reply))
    return all(any(_says(one, other) for other in given) for one in expected)


def abstains(reply: str) -> bool:
    """Whether a reply says that it is not known, or says nothing."""
    return not reply.strip() or _UNKNOWN.search(reply) is not None


def token_f1(answer: str, reply: str) -> float:
    """F1 of the words of a reply against those of the answer, in [0, 1], after SQuAD's normalisation."""
    right, given = normalised(answer).split(), normalised(reply).split()
    common = sum((Counter(right) & Counter(given)).values())
    return 2.0 * common / (len(right) + len(given)) if common else 0.0


def dates(text: str) -> Iterator[Date]:
    """The dates that an English text names."""
    for match in _DATE.finditer(text):
        part = match.groupdict()
        year = part["year"] or part["later"] or part["alone"]
        day = part["day"] or part["before"] or part["after"]
        month = int(part["number"]) if part["number"] else _month(part["name"])
        if part["name"] and not (year or day) and not match.group(0)[0].isupper():
            continue  # "may", "march": a month alone is a date only with its capital
        yield _number(year), month, _number(day)


def _says(expected: Date, given: Date) -> bool:
    return all(one is None or one == other for one, other in zip(expected, given, strict=True))


def _month(name: str | None) -> int | None:
    return None if name is None else next(n for n, month in enumerate(_MONTHS, 1) if month[:3] == name[:3].lower())


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _conversation(row: Mapping[str, Any]) -> LoCoMoConversation:
    name = row["sample_id"]
    turns = [
        locomo_turn(turn, at + number)
        for at, session in locomo_sessions(row["conversation"])
        for number, turn in enumerate(session)
    ]
    questions = [
        LoCoMoQuestion(
            f"{name}/{number}", name, item["question"], category,
            "" if category == ADVERSARIAL else str(item["answer"]),
        )
        for number, item in enumerate(row["qa"])
        if (category := CATEGORIES[item["category"]]) == ADVERSARIAL or "answer" in item
    ]  # fmt: skip
    return LoCoMoConversation(name, tuple(turns), max(turn.at for turn in turns) + 1.0, tuple(questions))
