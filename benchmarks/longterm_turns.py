"""Which memories the rules take from chat turns, against those that a careful reader would keep.

`longterm_turns.jsonl` holds turns as people write them, each with its memories (text, subject, time, negated or not),
all written by hand for this: the rules were made on the tuned half and on `longterm_turns_tuned.jsonl`, which was
written later, much of it in long turns, of which 318 in six batches that were each measured before the rules were
mended on them, and the last 165 in freer voices, with what people leave out; the reporting half was written before the
rules, for reporting only. `longterm_turns_fresh.jsonl` was written in other voices, and labelled by what a reader would
keep in whatever words; nothing was made on it but that two faults were mended (names with accents, the I of "PL/I"). As
`ewe.Memory.add` does, only what the user says is read.

An extracted text finds a memory of its turn if it has at least 0.6 of the stems of its content words, begins with the
same subject (the user, or the same person or thing of theirs), denies if it denies, and is told in the same time.
English tells what is to come in the present tense too, and "has" done is past or present: these find either. It is
right if it finds one, and 0.4 of its own content words are in the memories that it finds. Precise: the share of
extracted texts that are right; kept: the share of memories that are found. Shares have the ends of their 95% intervals
(Wilson). --show prints what is wrong or missed in the tuned half.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import parse_arguments, report
from benchmarks.verdicts import shares
from ewe.longterm.extraction import Extractor
from ewe.longterm.rule_facts import facts_by_rules
from ewe.text.english import FUNCTION_WORDS, is_irregular_past, stem, words_of
from ewe.text.words import fold, words

TURNS = Path(__file__).parent / "longterm_turns.jsonl"
FURTHER = Path(__file__).parent / "longterm_turns_tuned.jsonl"
FRESH = Path(__file__).parent / "longterm_turns_fresh.jsonl"
HALVES = ("tuned", "report")
_LEAST_FOUND, _LEAST_RIGHT = 0.6, 0.4
_SPEAKER = "The user"
_NO_CONTENT = FUNCTION_WORDS | words_of("user themselves others")
_DENIES = re.compile(r"n['’]t\b|\b(?:not|never|no|none|nobody|without|hardly|neither|cannot|nor|no longer)\b")
_PRESENT = words_of(
    "is are am has have does do isn't aren't hasn't haven't doesn't don't can can't cannot would wouldn't"
)
_PAST = words_of(
    """was were had did wasn't weren't hadn't didn't could couldn't used put quit broke woke forgot spent stood sat
shot lent hung broken eaten driven ridden worn thrown stolen hidden forgotten stole hid froze swept drank ate rode
wore threw fed slept heard felt found learnt cut hit hurt let"""
)

_FORMS = {"lives": "live", "uses": "use", "sees": "see"}  # the verbs, which the stems do not reach

_OWNS = r"got (?:to|an?|the|no|some|\d+|two|three|four|five)\b"  # "has got a cat" is told in the present
_PERFECT = re.compile(rf"\b(?:has|have)(?:n't)? (?:\w+ly |never |just |always |already )*(?P<done>(?!{_OWNS})\w+)")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a reader would keep. subject: "the user" or "the user's ..."; time: "past", "now" or "ahead"."""

    text: str
    subject: str
    time: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """What a role says, and the memories in it."""

    half: str
    role: str
    text: str
    memories: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one turn: the extracted texts, each with whether it is right, and the memories, each with whether found."""

    turn: Turn
    facts: tuple[tuple[str, bool], ...]
    memories: tuple[tuple[Kept, bool], ...]


def read(path: Path = TURNS) -> list[Turn]:
    """All turns of a file."""
    rows: Iterable[Mapping[str, Any]] = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Turn(**{**row, "memories": tuple(Kept(**one) for one in row["memories"])}) for row in rows]


def finds(fact: str, memory: Kept) -> bool:
    """Whether an extracted text says what a memory says, by the rule above."""
    wanted = _content(memory.text)
    if len(wanted & _content(fact)) < _LEAST_FOUND * len(wanted):
        return False
    time = _time(fact)
    same_time = memory.time in {"now": ("now", "ahead"), "since": ("past", "now")}.get(time, (time,))
    return same_time and denies(fact) == memory.negated and _has_subject(fact, memory.subject)


def denies(text: str) -> bool:
    """Whether a text says what is not."""
    return _DENIES.search(fold(text)) is not None


def outcome(turn: Turn, extract: Extractor) -> Outcome:
    """What is right and what is found of one turn."""
    facts = extract(_SPEAKER, turn.text) if turn.role == "user" else []
    found = {fact: [memory for memory in turn.memories if finds(fact, memory)] for fact in facts}
    every = [memory for memories in found.values() for memory in memories]
    return Outcome(
        turn,
        tuple((fact, _is_right(fact, memories)) for fact, memories in found.items()),
        tuple((memory, memory in every) for memory in turn.memories),
    )


def measure(turns: Sequence[Turn], extract: Extractor) -> dict[str, float]:
    """The shares of some turns."""
    outcomes = [outcome(turn, extract) for turn in turns]
    facts = [right for one in outcomes for _, right in one.facts]
    memories = [found for one in outcomes for _, found in one.memories]
    return {
        **shares("precise", sum(facts), len(facts)),
        **shares("kept", sum(memories), len(memories)),
    }


def _is_right(fact: str, found: Sequence[Kept]) -> bool:
    said = _content(fact)
    known = frozenset(stem for memory in found for stem in _content(memory.text))
    return bool(found) and len(said & known) >= _LEAST_RIGHT * len(said)


def _content(text: str) -> frozenset[str]:
    said = (_FORMS.get(word, word) for word in words(text))
    return frozenset(stem(word) for word in said if word not in _NO_CONTENT and not word.endswith("n't"))


def _time(text: str) -> str:
    """The time of the first word behind the subject that shows one."""
    folded = fold(text)
    subject = re.search(r"\bthe user(['’]s)?", folded)
    owned, rest = (bool(subject[1]), folded[subject.end() :]) if subject else (False, folded)
    said = [word for word in re.findall(r"[\w'’-]+", rest) if not word.endswith("ly")]
    said = said[1:] if owned and said[:1] == ["left"] else said  # "the user's left hand"
    for word in said:
        if word in ("will", "won't", "shall"):
            return "ahead"
        if word in ("has", "have", "hasn't", "haven't") and _is_perfect(rest):
            return "since"
        if word in _PRESENT:
            return "ahead" if re.search(r"\bgoing to (?!the\b)", rest) else "now"
        if word in _PAST or (word.endswith("ed") and len(word) > 4) or _is_past(word):
            return "past"
        if word == said[0] and word.endswith("s") and not owned:  # "the user's boss"
            return "now"
    return "now"


def _is_perfect(text: str) -> bool:
    found = _PERFECT.search(text)
    return found is not None and (found["done"].endswith("ed") or _is_past(found["done"]) or found["done"] in _PAST)


def _is_past(word: str) -> bool:
    return is_irregular_past(word) and not word.endswith("s")


def _has_subject(text: str, subject: str) -> bool:
    """Whether a text speaks first of the user, or of a thing or person of theirs, as `subject` does."""
    folded, thing = fold(text), fold(subject).removeprefix("the user").removeprefix("'s ")
    if not thing:
        first = re.search(r"\bthe user\b(?P<owner>['’]s)?", folded)
        return first is not None and (not first["owner"] or re.search(r" and the user\b(?!')", folded) is not None)
    first = re.search(r"\bthe user['’]s((?: [\w'’-]+){1,6})", folded)
    return first is not None and set(thing.split()) <= set(re.findall(r"[\w'’-]+", first[1]))


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--show", action="store_true", help="print what is wrong or missed in the tuned half")

    arguments = parse_arguments(__doc__, add)
    halves = {half: [turn for turn in read() if turn.half == half] for half in HALVES}
    halves |= {"tuned further": read(FURTHER), "fresh": read(FRESH)}
    if arguments.show:
        print("\n".join(map(_shown, [*halves["tuned"], *halves["tuned further"]])), file=sys.stderr)
    turns = {half: found[:: 20 if arguments.smoke else 1] for half, found in halves.items()}
    figures = {f"{half}: {key}": value for half in turns for key, value in measure(turns[half], facts_by_rules).items()}
    report("longterm_turns", arguments, {half: len(turns[half]) for half in turns}, figures)


def _shown(turn: Turn) -> str:
    found = outcome(turn, facts_by_rules)
    lines = [f"  {'right' if right else 'WRONG'}: {fact}" for fact, right in found.facts]
    lines += [f"  MISSED: {memory.text}" for memory, is_found in found.memories if not is_found]
    return "\n".join([f"{turn.role}: {turn.text}", *lines])


if __name__ == "__main__":
    main()
