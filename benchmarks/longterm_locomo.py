"""How often the turns that answer a question are among the memories found for it: LoCoMo's long conversations.

Every turn of a conversation is one memory of that conversation's user, by the speaker, with the caption of a picture
that it shows, made at the time of its session; a conversation is searched with its own questions, asked when it has
ended. Recall is the share of a question's evidence turns among the first five and ten, averaged over questions; those
that name no turn of their conversation are left out. words: BM25; vectors: all-MiniLM-L6-v2 (or --encoder); both: the
search of `ewe.longterm.memory_search`. Then the first forty of both, put in order by each scorer (what a scorer would
not use is left out). Nobody in these conversations is more reliable than another and no memory was checked, so scorers
can only keep or spoil the order of the search here: what they do to recall is the price of their other habits. --judge
lets MMA ask a judge about every close pair (slow on a CPU; --questions takes only the first of each conversation). The
weights of the search were tuned on the first three conversations of the public copy; --part held-out takes the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.common import ROOT, parse_arguments, report
from ewe.longterm.evaluation.selective_sets import locomo_evidence, locomo_sessions
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.mma import PUBLISHED_WEIGHTS
from ewe.longterm.scoring.protocol import Candidate, MemoryScorer
from ewe.longterm.scoring.scorers import DefaultScorer, MARKScorer, MMAScorer, NoScorer, VeriMemScorer
from ewe.longterm.store import MemoryStore
from ewe.retrieval.encoders import Encoder, SentenceEncoder
from ewe.verification.judges.load import load_judge

_CATEGORIES = {1: "several_hops", 2: "time", 3: "open", 4: "one_hop", 5: "adversarial"}  # as the set numbers them
_DEPTHS = (2, 5, 10)
_TUNED_ON = 3  # conversations
_CANDIDATES = 40
_RELIABILITY = 0.7  # of what a user says (verimem-b.txt, write time)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of one conversation, its category, and the ids of the turns that answer it."""

    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns as memories, the questions, and when the last session was (seconds since 1970)."""

    scope: Scope
    memories: list[Memory]
    questions: list[Question]
    ended: float


def read(path: Path) -> list[Conversation]:
    """All conversations of the set. Ends the program, saying why, where it is missing."""
    if not path.exists():
        sys.exit(f"{path} is missing: --data names the folder of the public sets (locomo)")
    return [conversation_of(row) for row in json.loads(path.read_text(encoding="utf-8"))]


def conversation_of(row: dict[str, Any]) -> Conversation:
    """One conversation of the set's file."""
    scope, memories, ended = Scope(row["sample_id"]), [], 0.0
    for at, turns in locomo_sessions(row["conversation"]):
        ended = max(ended, at)
        memories += [memory_of(turn, scope, at) for turn in turns]
    there = {memory.id for memory in memories}
    questions = [Question(item["question"], _CATEGORIES[item["category"]], locomo_evidence(item)) for item in row["qa"]]
    return Conversation(scope, memories, [one for one in questions if one.evidence and one.evidence <= there], ended)


def memory_of(turn: dict[str, Any], scope: Scope, at: float) -> Memory:
    """One turn, with what its picture shows."""
    picture = f" (shows {turn['blip_caption']})" if "blip_caption" in turn else ""
    source = MemorySource("user", turn["speaker"], _RELIABILITY)
    content = f"{turn['speaker']}: {turn['text']}{picture}"
    return Memory(turn["dia_id"], content, "turn", source, scope, {}, at, at, _RELIABILITY)


def made_up() -> list[Conversation]:
    """A conversation of ten turns, to see that the script runs."""
    scope = Scope("made up")
    things = ("kite", "lamp", "boat", "drum", "cake", "coat", "bell", "rope", "vase", "fork")
    memories = [
        memory_of({"speaker": "Ann", "text": f"I bought a {thing}.", "dia_id": f"D1:{number}"}, scope, 0.0)
        for number, thing in enumerate(things)
    ]
    questions = [
        Question(f"When did Ann buy the {thing}?", "time", frozenset({f"D1:{number}"}))
        for number, thing in enumerate(things[:4])
    ]
    return [Conversation(scope, memories, questions, 86400.0)]


Ranking = Callable[[Question, Conversation], Sequence[str]]


def searches(store: MemoryStore, encoder: Encoder) -> dict[str, Ranking]:
    """Ids of turns by words, by vectors and by both."""
    words, both = MemorySearch(store), MemorySearch(store, encoder)

    def by_vectors(question: Question, conversation: Conversation) -> list[str]:
        [vector] = encoder.encode_queries([question.text])
        numbers = store.scope_numbers([conversation.scope])
        hits = [number for number, _ in store.embeddings.search(vector, numbers, max(_DEPTHS))]
        memories = store.rows(hits, [conversation.scope])
        return [memories[number].id for number in hits]

    def by(search: MemorySearch) -> Ranking:
        return lambda question, conversation: [one.memory.id for one in candidates(search, question, conversation)]

    return {"words": by(words), "vectors": by_vectors, "both": by(both)}


def candidates(search: MemorySearch, question: Question, conversation: Conversation) -> list[Candidate]:
    """The first forty, with their scores over the best one's."""
    [hits] = search.search([question.text], [conversation.scope], _CANDIDATES)
    return [Candidate(hit.memory, hit.score / hits[0].score) for hit in hits]


def reranked(search: MemorySearch, scorer: MemoryScorer) -> Ranking:
    """What both found, in the order of a scorer."""

    def rank(question: Question, conversation: Conversation) -> list[str]:
        found = candidates(search, question, conversation)
        scored = zip(found, scorer.score(found, conversation.ended), strict=True)
        usable = [(score.rank, one.memory.id) for one, score in scored if score.usable]
        return [memory_id for _, memory_id in sorted(usable, key=lambda pair: -pair[0])]

    return rank


def scorers(judge: str | None, device: str) -> dict[str, MemoryScorer]:
    """Who puts them in order."""
    named: dict[str, MemoryScorer] = {
        "no scoring": NoScorer(),
        "verimem": VeriMemScorer(),
        "mma": MMAScorer(),
        "mma st": MMAScorer(PUBLISHED_WEIGHTS.ablated("st")),
        "mark": MARKScorer(),
        "mark, as written": MARKScorer(as_written=True),
        "default": DefaultScorer(),
    }
    return named if judge is None else {**named, "mma, judged": MMAScorer(judge=load_judge(judge, device=device))}


def measure(rank: Ranking, conversations: Sequence[Conversation]) -> dict[str, float]:
    """Mean recall at each depth, of all questions and per category."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for conversation in conversations:
        for question in conversation.questions:
            found = rank(question, conversation)
            for depth in _DEPTHS:
                share = len(question.evidence & set(found[:depth])) / len(question.evidence)
                shares[f"recall_at_{depth}"].append(share)
                shares[f"{question.category}_recall_at_{depth}"].append(share)
    return {key: sum(values) / len(values) for key, values in shares.items()}


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures = document["figures"]
    recalls = {f"among the first {count}": plots.found(figures, rf"(.+): recall_at_{count}") for count in (5, 10)}
    return [plots.Panel("Turns that answer LoCoMo's questions, recalled", "", "recall", recalls)]


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        plots.add_option(parser)
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--encoder", help="another sentence encoder: a hub id or a folder")
        parser.add_argument("--judge", help="also re-rank by MMA with this judge's entailment (slow)")
        parser.add_argument("--part", choices=("all", "tuned", "held-out"), default="all", help="which conversations")
        parser.add_argument("--questions", type=int, help="only so many of each conversation")

    arguments = parse_arguments(__doc__, add)
    conversations = made_up() if arguments.smoke else read(arguments.data / "locomo" / "conversations.json")
    parts = {"tuned": slice(_TUNED_ON), "held-out": slice(_TUNED_ON, None), "all": slice(None)}
    conversations = conversations[parts[arguments.part]]
    if arguments.questions is not None:
        conversations = [replace(one, questions=one.questions[: arguments.questions]) for one in conversations]
    encoder = SentenceEncoder(arguments.encoder, device=arguments.device)
    table: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        for conversation in conversations:
            store.add(conversation.memories)
        store.embeddings.embed(encoder)
        for name, rank in searches(store, encoder).items():
            table[name] = measure(rank, conversations)
        both = MemorySearch(store, encoder)
        for name, scorer in scorers(arguments.judge, arguments.device).items():
            table[f"both, {name}"] = measure(reranked(both, scorer), conversations)
    counts = Counter(question.category for one in conversations for question in one.questions)
    settings = {
        "encoder": encoder.name,
        "memories": sum(len(one.memories) for one in conversations),
        "questions": dict(counts),
        "part": arguments.part,
        "judge": arguments.judge or "",
    }
    figures = {f"{name}: {key}": round(value, 4) for name, row in table.items() for key, value in row.items()}
    document = report("longterm_locomo", arguments, settings, figures)
    plots.draw(arguments.plot, panels, document)


if __name__ == "__main__":
    main()
