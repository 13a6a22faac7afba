"""MedMCQA for MARK's experiments: questions with explanations, an exact reader, its builder and search services."""

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewe.errors import ConfigError
from ewe.longterm.evaluation.mark_metrics import sentences
from ewe.longterm.evaluation.protocol import Asked
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, Scope
from ewe.longterm.scoring.mark_builder import KINDS, MemoryBuilder, Note, Notes, Turn
from ewe.longterm.scoring.protocol import Candidate, MemoryScorer
from ewe.text.words import words

LETTERS = "ABCD"
_WORDS = (30, 190)  # of an explanation: about the paper's 80 to 250 tokens
_LETTER = re.compile(r"\b([A-D])\b")
_REFERENCE = re.compile(r"\b(ref|reference|page no|pg)\b", re.IGNORECASE)
_MOST_NOTE = 500
_EXPERT = "The expert says:"
_TOP_N = 20  # memories of each kind that are re-ranked (the MARK paper, 1.2)
_DEPTH = 10 * _TOP_N  # The search knows no kinds: so many memories are looked through for twenty of each.


@dataclass(frozen=True, slots=True)
class Record:
    """A question with four options, the place of the right one, and the sentences that explain it."""

    id: str
    question: str
    options: tuple[str, ...]
    right: int
    explanation: tuple[str, ...]

    @property
    def reference(self) -> str:
        """The expected response."""
        return " ".join([f"The answer is {self.options[self.right]}.", *self.explanation])

    def wording(self, hints: Sequence[str] = (), again: bool = False) -> str:
        """As a user asks it; hints: what an expert said in this conversation; again: in another user's words."""
        begin = "I'm wondering what you make of this one. " if again else ""
        options = " ".join(f"{letter}) {option}" for letter, option in zip(LETTERS, self.options, strict=True))
        return "\n".join([f"{begin}{self.question} {options}", *(f"{_EXPERT} {one}" for one in hints)])

    def chosen(self, reply: str) -> int | None:
        """The place of the option that a reply names, by its words or else by a letter; None if it names none."""
        named = [place for place, option in enumerate(self.options) if _says(reply, option)]
        if len(named) != 1:
            letter = _LETTER.search(reply)
            named = [LETTERS.index(letter.group(1))] if letter else []
        return named[0] if len(named) == 1 else None


def read_records(folder: Path, count: int) -> dict[str, Record]:
    """The first records with one right answer and an explanation of a fit length, by id. Raises ConfigError."""
    path = folder / "medmcqa" / "dev_500.jsonl"
    if not path.exists():
        raise ConfigError(f"{path} is missing: --data names the folder of the public sets (medmcqa)")
    records: dict[str, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        explained = tuple(one for one in sentences(row["exp"] or "") if not _REFERENCE.search(one))
        if row["choice_type"] == "single" and _WORDS[0] <= len(words(" ".join(explained))) <= _WORDS[1]:
            options = tuple(" ".join(str(row[f"op{letter}"]).split()) for letter in "abcd")
            records[row["id"]] = Record(row["id"], row["question"], options, row["cop"] - 1, explained)
    if len(records) < count:
        raise ConfigError(f"{path} has {len(records)} fit records: ask for no more with --cases")
    return dict(list(records.items())[:count])


class QuotingBuilder(MemoryBuilder):
    """Notes what was said word for word, in the place of a model: the exact reader's."""

    def __init__(self) -> None:
        pass

    def build(self, conversation: Sequence[Turn]) -> Notes:
        """What the expert explained as residual, the answer told as the user's, the last answer as the response."""
        hints = [turn.text for turn in conversation if turn.role == "user"][1:]
        question = conversation[0].text.split(" A) ")[0]
        texts = [("question", f"{question} {one}") for one in hints[:1]]
        texts += [("residual", one) for one in hints[1:]]
        texts += [("response", f"{question} {turn.text}") for turn in conversation[-1:] if turn.role == "assistant"]
        return Notes(tuple(Note(kind, text[:_MOST_NOTE]) for kind, text in texts), {})


def best_of_kinds(search: MemorySearch, scorer: MemoryScorer, query: str, scope: Scope, now: float) -> list[Memory]:
    """MARK's search service: of the 20 most similar memories of each kind the one that the scorer ranks highest."""
    [hits] = search.search([query], [scope], _DEPTH)
    best = max((hit.score for hit in hits), default=0.0)
    chosen = []
    for kind in KINDS:
        closest = [hit for hit in hits if hit.memory.kind == kind][:_TOP_N]
        candidates = [Candidate(hit.memory, hit.score / best) for hit in closest]
        scores = scorer.score(candidates, now)
        usable = [place for place, score in enumerate(scores) if score.usable]
        if usable:
            chosen.append(candidates[max(usable, key=lambda place: scores[place].rank)].memory)
    return chosen


def read(queries: Sequence[Asked], records: Mapping[str, Record]) -> list[str]:
    """Chooses the option whose words stand in what was recalled or told most; by chance where none does."""
    by_question = {record.question: record for record in records.values()}
    return [_read(one, by_question) for one in queries]


def _read(query: Asked, records: Mapping[str, Record]) -> str:
    text = query.question.text
    record = next(one for question, one in records.items() if question in text)
    hints = [part.strip() for part in text.split(_EXPERT)[1:]]
    sources = [*hints, *(one.memory.content for one in query.recalled)]
    topic = set(words(record.question))
    near = [one for one in sources if one in hints or len(topic & set(words(one))) >= len(topic) / 2]
    counts = [sum(_says(one, option) for one in near) for option in record.options]
    best = [place for place, count in enumerate(counts) if count == max(counts)]
    place = best[zlib.crc32(record.id.encode()) % len(best)]
    return " ".join([f"{LETTERS[place]}) {record.options[place]}.", *near])


def _says(text: str, option: str) -> bool:
    required = words(option)
    return bool(required) and f" {' '.join(required)} " in f" {' '.join(words(text))} "
