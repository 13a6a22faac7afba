"""Which facts are taken from LoCoMo's conversations: by the rules of English, and with --model by a chat model too.

Two people talk; every turn is remembered as its speaker's. Per extractor: facts, the share of the set's observations
(what people noted down of a turn) whose turn gave a fact, the share that a fact of that turn tells (at least half of
the stems of its words that mean something), and of --sample facts, drawn by seed, the share that a judge finds entailed
by their turn. The rules and the model's prompt were written on the first three conversations of the public copy; the
others are measured. A model is slow on a CPU: --turns takes only so many turns, drawn by seed, for every extractor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.common import ROOT, parse_arguments, report
from ewe.longterm.evaluation.selective_sets import locomo_sessions
from ewe.longterm.extraction import Chat, Extractor, FactExtractor
from ewe.longterm.rule_facts import facts_by_rules
from ewe.text.conversation import Conversation
from ewe.text.english import FUNCTION_WORDS, stem
from ewe.text.words import words
from ewe.types.sampling_params import SamplingParams
from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import SUPPORTED, Judge

_WRITTEN_ON = 3  # conversations
_LEAST_SHARED = 0.5
_MADE_UP = [("Ann", "I moved to Lyon in 2019.", ("Ann moved to Lyon in 2019.",)), ("Ben", "How nice!", ())]


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says, and what people noted down of it."""

    speaker: str
    text: str
    observations: tuple[str, ...]


def read(path: Path) -> list[Turn]:
    """All turns of the conversations that are measured. Ends the program, saying why, where the set is missing."""
    if not path.exists():
        sys.exit(f"{path} is missing: --data names the folder of the public sets (locomo)")
    return [turn for row in json.loads(path.read_text(encoding="utf-8"))[_WRITTEN_ON:] for turn in turns_of(row)]


def turns_of(row: Mapping[str, Any]) -> Iterator[Turn]:
    """The turns of one conversation of the set's file."""
    noted: dict[str, list[str]] = {}
    for session in row["observation"].values():
        for text, ids in (pair for rows in session.values() for pair in rows):
            for name in [ids] if isinstance(ids, str) else ids:
                noted.setdefault(name, []).append(text)
    for _, turns in locomo_sessions(row["conversation"]):
        for turn in turns:
            yield Turn(turn["speaker"], turn["text"], tuple(noted.get(turn["dia_id"], ())))


def tells(fact: str, observation: str) -> bool:
    """Whether a fact has at least half of an observation's words, by their stems."""
    wanted = {stem(word) for word in words(observation)} - FUNCTION_WORDS
    return len(wanted & {stem(word) for word in words(fact)}) >= _LEAST_SHARED * len(wanted)


def measure(extract: Extractor, turns: list[Turn], judge: Judge, sample: int) -> tuple[dict[str, float], list[str]]:
    """The figures, and the judged facts with their turns, to read."""
    found = [(turn, extract(turn.speaker, turn.text)) for turn in turns]
    observed = [(facts, one) for turn, facts in found for one in turn.observations]
    pairs = [(f"{turn.speaker}: {turn.text}", fact) for turn, facts in found for fact in facts]
    drawn = Random(0).sample(pairs, min(sample, len(pairs)))
    entailed = [float(row[SUPPORTED]) >= 0.5 for row in judge.judge(drawn)] if drawn else []
    figures = {
        "facts": float(len(pairs)),
        "observed_turn_share": sum(bool(facts) for facts, _ in observed) / len(observed),
        "observation_share": sum(tells(" ".join(facts), one) for facts, one in observed) / len(observed),
        "entailed_share": sum(entailed) / max(1, len(entailed)),
    }
    marked = zip(entailed, drawn, strict=True)
    return figures, [f"{'+' if yes else '-'} {fact}   <- {told}" for yes, (told, fact) in marked]


def remembered(chat: Chat) -> Chat:
    """Asks nothing twice."""
    answers: dict[str, str] = {}

    def ask(messages: Conversation, params: SamplingParams) -> str:
        asked = messages[-1]["content"]
        if asked not in answers:
            answers[asked] = chat(messages, params)
        return answers[asked]

    return ask


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--model", help="a chat model that takes facts, too")
        parser.add_argument("--judge", default="builtin", help="says whether a fact is entailed by its turn")
        parser.add_argument("--turns", type=int, help="only so many turns")
        parser.add_argument("--sample", type=int, default=200, help="facts that are judged, per extractor")

    arguments = parse_arguments(__doc__, add)
    file = arguments.data / "locomo" / "conversations.json"
    turns = [Turn(*one) for one in _MADE_UP] if arguments.smoke else read(file)
    if arguments.turns is not None:
        turns = Random(0).sample(turns, arguments.turns)
    judge = load_judge(arguments.judge, device=arguments.device)
    extractors: dict[str, Extractor] = {"rules": facts_by_rules}
    if arguments.model is not None:
        from ewe import LLM

        chat = remembered(LLM(arguments.model, verifier="none").chat_plainly)
        builtin = load_judge("builtin", device=arguments.device)
        extractors |= {"model": FactExtractor(chat), "model, judged": FactExtractor(chat, builtin)}
    figures: dict[str, float] = {}
    for name, extract in extractors.items():
        found, lines = measure(extract, turns, judge, arguments.sample)
        figures |= {f"{name}: {key}": round(value, 4) for key, value in found.items()}
        print("\n".join([name, *lines]), file=sys.stderr)
    model = Path(arguments.model).name if arguments.model else ""
    settings = {"turns": len(turns), "model": model, "judge": arguments.judge, "sample": arguments.sample}
    report("longterm_extraction", arguments, settings, figures)


if __name__ == "__main__":
    main()
