"""Claims of FEVER and questions of LoCoMo as items: turns to remember, what is asked of them, what is right."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.longterm.evaluation.mma_cases import FALSE, TRUE, UNKNOWN, VERDICTS
from ewe.longterm.evaluation.protocol import Question, Turn
from ewe.longterm.records import MemorySource

_VERDICT_FORM = "Answer with one word: TRUE, FALSE, or UNKNOWN if the memories do not settle it."
_BRIEF_FORM = "Answer in a few words, or UNKNOWN if the memories do not tell."
_CHUNK = 100  # claims that share a memory
_LEFT_OUT = 3  # one evidence text in three is not told
_DAY = 86400.0
_TURN = re.compile(r"D\d+:\d+")
_ADVERSARIAL = 5  # LoCoMo's category of questions that the conversation does not answer
_SPEAKER_RELIABILITY, _EVIDENCE_RELIABILITY = 0.7, 0.9  # verimem-b.txt, write time


@dataclass(frozen=True, slots=True)
class Query:
    """A question and what makes a reply to it right: one of these texts stands in it; none: abstaining is due."""

    question: Question
    right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """What is told, in the order of its times, and what is asked then."""

    turns: tuple[Turn, ...]
    queries: tuple[Query, ...]


def fever_items(path: Path, count: int, seed: int) -> dict[str, Item]:
    """So many claims, drawn by seed, in items of a hundred with their evidence. Raises InvalidRequestError.

    A third of the evidence is left out; what it would settle is UNKNOWN.
    """
    rows = [json.loads(line) for line in _read(path).splitlines()]
    drawn = Random(seed).sample(rows, min(count, len(rows)))
    chunks = [drawn[first : first + _CHUNK] for first in range(0, len(drawn), _CHUNK)]
    return {
        f"fever-{seed}-{number}": _fever_item(chunk, Random(f"{seed} {number}")) for number, chunk in enumerate(chunks)
    }


def _fever_item(rows: Sequence[Mapping[str, str]], random: Random) -> Item:
    texts = list(dict.fromkeys(row["evidence"] for row in rows))
    kept = set(random.sample(texts, len(texts) - len(texts) // _LEFT_OUT))
    source = MemorySource("document", "wikipedia", _EVIDENCE_RELIABILITY)
    turns = [Turn(text, source, 60.0 * number) for number, text in enumerate(texts) if text in kept]
    truths = [
        {"supported": TRUE, "refuted": FALSE}[row["label"]] if row["evidence"] in kept else UNKNOWN for row in rows
    ]
    queries = [
        Query(
            Question(f"Is this true: {row['claim']}", _DAY, truth, VERDICTS, _VERDICT_FORM),
            () if truth == UNKNOWN else (truth,),
        )
        for row, truth in zip(rows, truths, strict=True)
    ]
    return Item(tuple(turns), tuple(queries))


def locomo_items(path: Path, count: int | None) -> dict[str, Item]:
    """The conversations, each with its questions (at most `count` in all, as many of each). Raises InvalidRequestError.

    Right is the answer, or a turn that the set names as its evidence; adversarial questions have none.
    """
    rows = json.loads(_read(path))
    if not isinstance(rows, list) or not rows:
        raise InvalidRequestError(f"{path}: no list of conversations")
    most = None if count is None else max(1, count // len(rows))
    return {row["sample_id"]: _conversation(row, most) for row in rows}


def _conversation(row: Mapping[str, Any], most: int | None) -> Item:
    turns = dict(_turns(row["conversation"]))
    end = max(turn.at for turn in turns.values()) + _DAY
    there = [one for one in row["qa"] if one["category"] == _ADVERSARIAL or locomo_evidence(one) & turns.keys()]
    # The file is sorted by session; its first questions would all be about the first ones.
    chosen = there if most is None else Random(row["sample_id"]).sample(there, min(most, len(there)))
    queries = []
    for one in chosen:
        due = one["category"] == _ADVERSARIAL
        hints = () if due else tuple(turns[name].text for name in sorted(locomo_evidence(one) & turns.keys()))
        right = () if due else (str(one["answer"]), *hints)
        question = Question(one["question"], end, UNKNOWN if due else right[0], (UNKNOWN, "yes", "no"), _BRIEF_FORM)
        queries.append(Query(question, right))
    return Item(tuple(turns.values()), tuple(queries))


def _turns(conversation: Mapping[str, Any]) -> Iterator[tuple[str, Turn]]:
    for at, turns in locomo_sessions(conversation):
        for number, turn in enumerate(turns):
            yield turn["dia_id"], locomo_turn(turn, at + number)


def locomo_sessions(conversation: Mapping[str, Any]) -> Iterator[tuple[float, list[dict[str, Any]]]]:
    """When each session of a row's `conversation` was (seconds since 1970), and its turns as the set has them."""
    for key, turns in conversation.items():
        if isinstance(turns, list):
            at = datetime.strptime(conversation[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            yield at.timestamp(), turns


def locomo_turn(turn: Mapping[str, Any], at: float) -> Turn:
    """A turn of a session, said at that time (seconds since 1970)."""
    source = MemorySource("user", turn["speaker"], _SPEAKER_RELIABILITY)
    return Turn(f"{turn['speaker']}: {turn['text']}", source, at, turn.get("blip_caption", ""))


def locomo_evidence(question: Mapping[str, Any]) -> frozenset[str]:
    """The ids of the turns that a question's `evidence` names."""
    return frozenset(_TURN.findall(" ".join(question["evidence"])))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidRequestError(f"{path} is missing: --data names the folder of the public sets") from error
