"""What remembers and answers in an evaluation: this engine's stores under each scorer, an oracle and a coin."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ewe.config import LongTermConfig
from ewe.config.setting_names import NONE, unknown
from ewe.errors import ConfigError
from ewe.longterm.default_memory import default_memory, default_rules
from ewe.longterm.evaluation.protocol import Answerer, Asked, MemorySystem, Question, Reply, Turn
from ewe.longterm.recall import MemoryRules, Recalled
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.forms import FirstVeracity, first_trust, trust_after, unmoved
from ewe.longterm.scoring.mark import PRESETS, MRSWeights
from ewe.longterm.scoring.mma import ABLATIONS, PUBLISHED_WEIGHTS, source_prior
from ewe.longterm.scoring.scorers import MARKScorer, MMAScorer, NoScorer, SettledMARKScorer, VeriMemScorer
from ewe.longterm.scoring.threshold import Action, VeracityThreshold
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.types.protocols import Retriever
from ewe.verification.judges.protocol import Judge

IMAGE = "image"  # in the metadata of what a picture shows: its path, empty where there is none to see
UNFLAGGED = "verimem no uncertainty"
_TOP_K = 8  # memories, or passages, per question
_ALL = VeracityThreshold(0.0, 0.0, 0.0)
_AS_WRITTEN = FirstVeracity(contradictions=True)


def memory_rules(judge: Judge | None = None, trusted: Retriever | None = None) -> dict[str, Callable[[], MemoryRules]]:
    """Scorers by name, each with the threshold and first veracity that belong to it.

    judge: of "mma judged"; trusted: what "verimem-a" compares new memories with. "mma kinds" believes sources by what
    they are, as the authors' public code, instead of by their reliability.
    """
    judging = partial(LongTermConfig, judge_turns=True)  # the judge of a bench is there to be asked
    open_ = partial(MemoryRules, threshold=_ALL, first=_AS_WRITTEN)
    verimem = partial(MemoryRules, VeriMemScorer(), first=_AS_WRITTEN)
    mark = partial(MemoryRules, threshold=_ALL, first=first_trust, update=trust_after)
    rules: dict[str, Callable[[], MemoryRules]] = {
        "none": lambda: open_(NoScorer()),
        "mma": lambda: open_(MMAScorer()),
        "mma kinds": lambda: open_(MMAScorer(source=lambda memory: source_prior(memory.source.kind))),
        **{f"mma {mode}": partial(open_, MMAScorer(PUBLISHED_WEIGHTS.ablated(mode))) for mode in ABLATIONS},
        "verimem": verimem,
        "verimem fixed threshold": lambda: replace(verimem(), threshold=VeracityThreshold(scale=0.0)),
        UNFLAGGED: verimem,
        "verimem no lookup": lambda: replace(verimem(), checks=0),
        "verimem static": lambda: replace(verimem(), update=unmoved),
        **{name: partial(default_rules, judging(scorer=name), judge, trusted) for name in ("verimem-a", "verimem-b")},
        "mark": lambda: mark(MARKScorer()),
        "mark settled": lambda: open_(SettledMARKScorer()),
        "mark as written": lambda: mark(MARKScorer(as_written=True)),
        "mark similarity": lambda: mark(MARKScorer(MRSWeights(0.0, 0.0, 1.0, 0.0))),
        **{f"mark {name}": partial(mark, MARKScorer(PRESETS[name])) for name in PRESETS if name != "default"},
        "default": lambda: default_rules(judging()),
        "default fixed threshold": lambda: MemoryRules(threshold=VeracityThreshold(scale=0.0)),
    }
    return rules if judge is None else {**rules, "mma judged": lambda: open_(MMAScorer(judge=judge))}


@dataclass(slots=True)
class StoreSystem(MemorySystem):
    """A store of this engine under one scorer; every item has a scope of its own. The store stays the caller's.

    answerer: says what the recalled memories answer. judge: finds contradictions on write. captions: whether what an
    image shows is remembered in words.
    """

    name: str
    store: MemoryStore
    answerer: Answerer
    rules: MemoryRules
    judge: Judge | None = None
    trusted: Retriever | None = None
    captions: bool = True
    scope: Scope = field(init=False, default=Scope("nobody"))
    service: MemoryService = field(init=False)
    now: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        parts: dict[str, Any] = {"judge": self.judge, "trusted": self.trusted, "rules": self.rules}
        self.service = default_memory(self.store, **parts, encoder=NONE, clock=lambda: self.now)

    def begin(self, item: str) -> None:
        """As `MemorySystem` says."""
        self.scope = Scope(item)

    def remember(self, turn: Turn) -> None:
        """As `MemorySystem` says."""
        self.now = turn.at
        shown = f"{turn.text} [image: {turn.caption}]" if turn.caption and self.captions else turn.text
        image = {IMAGE: str(turn.image or "")} if turn.caption or turn.image else {}
        self.service.add(shown, self.scope, turn.source, "turn", image)

    def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """As `MemorySystem` says."""
        queries = []
        for question in questions:
            self.now = question.at
            recall = self.service.search(question.text, [self.scope], _TOP_K)
            kept = tuple(one for one in recall.used if question.only in ("", _modality(one)))
            if self.name == UNFLAGGED:
                kept = tuple(replace(one, action=Action.USE) for one in kept)
            queries.append(Asked(question, kept, self.name not in ("none", UNFLAGGED)))
        return _replies(self.answerer, queries)


def _replies(answerer: Answerer, queries: Sequence[Asked]) -> list[Reply]:
    texts = answerer(queries)
    return [Reply(text, one.confidence, one.recalled) for text, one in zip(texts, queries, strict=True)]


def _modality(one: Recalled) -> str:
    return "image" if IMAGE in one.memory.metadata else "text"


@dataclass(slots=True)
class NoMemory(MemorySystem):
    """Forgets every turn; with trusted passages it answers by what it finds among them (RAG)."""

    name: str
    answerer: Answerer
    trusted: Retriever | None = None

    def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """As `MemorySystem` says."""
        return _replies(self.answerer, [Asked(question, self._recalled(question), False) for question in questions])

    def _recalled(self, question: Question) -> tuple[Recalled, ...]:
        hits = [] if self.trusted is None else self.trusted.retrieve([question.text], _TOP_K)[0]
        recalled = []
        for one in (hit.passage for hit in hits):
            memory = Memory(one.id, one.text, source=MemorySource("document", one.source), created_at=question.at)
            recalled.append(Recalled(memory, one.veracity, 0.0, 1.0, Action.USE))
        return tuple(recalled)


@dataclass(slots=True)
class Oracle(MemorySystem):
    """Knows the truth: what can be had at most."""

    name: str = "oracle"

    def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """The truth; all points on it where points are asked for."""
        return [Reply(_put(question, question.truth), 1.0) for question in questions]


@dataclass(slots=True)
class Coin(MemorySystem):
    """Chooses by chance, the same at every run: what costs nothing."""

    name: str = "coin"
    item: str = field(init=False, default="")

    def begin(self, item: str) -> None:
        """As `MemorySystem` says."""
        self.item = item

    def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One of the choices."""
        replies = []
        for number, question in enumerate(questions):
            draw = Random(f"0|{self.item}|{number}|{question.text}|{question.form}")
            replies.append(Reply(_put(question, draw.choice(question.choices)), draw.random()))
        return replies


def _put(question: Question, choice: str) -> str:
    return f"{choice}=100" if "points" in question.form else choice


@contextmanager
def open_system(
    name: str, answerer: Answerer, judge: Judge | None = None, scorer_judge: Judge | None = None, **parts: Any
) -> Iterator[MemorySystem]:
    """The system with this name ("oracle", "coin", or one of `memory_rules`) over a new store, thrown away at the end.

    judge: of contradictions on write, and of support in "mma judged", unless there is a scorer_judge for that. parts:
    other fields of `StoreSystem`. Raises ConfigError for a name that is none.
    """
    rules = memory_rules(scorer_judge or judge, parts.get("trusted"))
    if name in ("oracle", "coin"):
        yield Oracle() if name == "oracle" else Coin()
    elif name in ("no memory", "rag"):
        yield NoMemory(name, answerer, parts.get("trusted") if name == "rag" else None)
    elif name not in rules:
        raise ConfigError(unknown("memory system", name, (*rules, "oracle", "coin", "no memory", "rag")))
    else:
        with TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
            yield StoreSystem(name, store, answerer, rules[name](), judge, **parts)
