"""MARK's experiments 1 to 4 on MedMCQA (its paper, 2 and 3), with its builder and search services around a model."""

import time
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ewe.evaluation.tables import Curves, save_curves
from ewe.longterm.evaluation.answerers import ModelAnswerer
from ewe.longterm.evaluation.bench import Bench, Finding, Setup, by_system
from ewe.longterm.evaluation.locomo_recall import RememberedTexts
from ewe.longterm.evaluation.mark_metrics import (
    Similarity,
    alpha_study,
    coverage_scores,
    information_capture,
    key_point_coverage,
)
from ewe.longterm.evaluation.mark_records import LETTERS, QuotingBuilder, Record, best_of_kinds, read, read_records
from ewe.longterm.evaluation.memory_systems import StoreSystem
from ewe.longterm.evaluation.protocol import Asked, MemorySystem, Question
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.recall import Recalled
from ewe.longterm.records import Memory, MemorySource
from ewe.longterm.scoring import mark
from ewe.longterm.scoring.mark_builder import MemoryBuilder, Turn
from ewe.longterm.scoring.threshold import Action
from ewe.retrieval.encoders import SentenceEncoder, builtin_encoder_path
from ewe.retrieval.veracity import word_cosines
from ewe.text.words import words
from ewe.verification.endpoint.protocol import CompletionError, LocalCompleter

_RECORDS = 107  # as in the paper's experiment 3
_DAY = 86400.0
_TURNS = 4  # most of a conversation with an expert, as in table 4
_MISTAKEN = 5  # one wrong answer of so many is corrected wrongly first
_MULTI_USER = 15  # conversations of experiment 4
_FORM = "Answer with the letter and the words of the right option, then explain it in one or two sentences."
_COLUMNS = {
    "right1": "right, exp. 1", "wrong1": "hallucinated", "ics1": "ICS", "kpcs1": "KPCS", "aics1": "AICS",
    "turns2": "turns, exp. 2", "notes2": "memories", "right3": "right, exp. 3", "wrong3": "hallucinated, 3",
    "ics3": "ICS, 3", "printed3": "ICS as printed, 3", "kpcs3": "KPCS, 3", "aics3": "AICS, 3", "words3": "words, 3",
    "right_again": "right after feedback", "kept": "memories kept",
    "turns4": "turns, exp. 4", "right4": "right, exp. 4", "ms1": "CPU ms, exp. 1", "ms3": "CPU ms, exp. 3",
}  # fmt: skip


class MARKBench(Bench):
    """All experiments on one set of records are one item: the memories of all conversations are searched together.

    One in five of the wrong answers is first corrected wrongly by another user (the paper's section 5).
    """

    name, columns, items = "mark", _COLUMNS, ("medmcqa",)
    answer_tokens = 256  # notes of a conversation, in JSON

    def __init__(self, records: Mapping[str, Record], similarity: Similarity) -> None:
        self.records, self.similarity, self.reader = records, similarity, partial(read, records=records)

    def play(self, system: MemorySystem, item: str) -> Finding:
        """Experiment 1 for every system; 2 to 4 for those with a store."""
        played = _Experiments(system, self.records, self.similarity)
        first = played.ask_all("1", 0.0)
        if isinstance(system, StoreSystem):
            played.build([one for one, right in first.items() if not right])
            played.ask_all("3", _DAY)
            still = [one for one, right in played.ask_all("_again", 30 * _DAY).items() if not right]
            played.multi_user(still[:_MULTI_USER])
        return Finding(self.name, system.name, item, dict(played.values), played.replies)

    def plot(self, findings: Sequence[Finding], path: Path) -> None:
        """The mean AICS of right and wrong answers of experiment 1 over alpha (figure 2), for the first system."""
        values = next(iter(by_system(findings).values()))[0].values
        study = alpha_study(values["ics1"], values["kpcs1"], values["right1"])
        lines = {
            name: (list(study), [pair[place] for pair in study.values()])
            for place, name in enumerate(("right", "wrong"))
        }
        save_curves([Curves("alpha", "AICS", lines)], path)


def open_benches(setup: Setup) -> list[MARKBench]:
    """The records in the folder of public sets; setup.cases: how many. Sentences are compared by the built-in encoder,
    or where it is missing by their words.
    """
    records = read_records(setup.data or Path("shared/data"), setup.cases or _RECORDS)
    if builtin_encoder_path() is None:
        return [MARKBench(records, word_cosines)]
    return [MARKBench(records, partial(_cosines, RememberedTexts(SentenceEncoder())))]


class _Experiments:
    """One system through the experiments; figures by column."""

    def __init__(self, system: MemorySystem, records: Mapping[str, Record], similarity: Similarity) -> None:
        self._system, self._records, self._similarity = system, records, similarity
        self.values: defaultdict[str, list[float]] = defaultdict(list)
        self.replies: list[str] = []
        self._trust: dict[str, float] = {}

    def ask_all(self, number: str, at: float) -> dict[str, bool]:
        """Asks every question once and grades the replies; which are right. From experiment 3 on with memories."""
        outcome = {}
        for record in self._records.values():
            began = time.process_time()
            memories = [] if number == "1" else self._injected(record, at)
            reply = self._reply(record, at, memories, again=number == "_again")
            self.values[f"ms{number}"].append(1000.0 * (time.process_time() - began))
            outcome[record.id] = self._grade(record, reply, number)
            if memories:
                self._give_feedback(memories, outcome[record.id])
            self.replies.append(reply)
        return outcome

    def build(self, wrong: Sequence[str]) -> None:
        """Experiment 2: an expert explains each wrong answer until it is right; the builder takes notes."""
        for record_id in wrong:
            record = self._records[record_id]
            if zlib.crc32(record_id.encode()) % _MISTAKEN == 0:
                self._note(_mistaken(record))
            conversation = self._correct(record, [])
            self.values["turns2"].append((len(conversation) - 2) / 2)
            self.values["notes2"].append(self._note(conversation))

    def multi_user(self, wrong: Sequence[str]) -> None:
        """Experiment 4: another expert explains with the memories there; then a third user asks the same."""
        at = 31 * _DAY
        for record_id in wrong:
            record = self._records[record_id]
            conversation = self._correct(record, self._injected(record, at))
            self.values["turns4"].append((len(conversation) - 2) / 2)
            self._note(conversation)
            reply = self._reply(record, at, self._injected(record, at), again=True)
            self.values["right4"].append(float(record.chosen(reply) == record.right))

    def _correct(self, record: Record, memories: Sequence[Memory]) -> list[Turn]:
        """The conversation with the expert, who first names the right option; at most four turns of theirs."""
        answer = f"The right answer is {LETTERS[record.right]}) {record.options[record.right]}."
        hints: list[str] = []
        reply = self._reply(record, 0.0, memories)
        conversation = [Turn("user", record.wording()), Turn("assistant", reply or "-")]
        for piece in [answer, *record.explanation][:_TURNS]:
            hints.append(piece)
            reply = self._reply(record, 0.0, memories, hints)
            conversation += [Turn("user", piece), Turn("assistant", reply or "-")]
            if record.chosen(reply) == record.right:
                break
        return conversation

    def _note(self, conversation: Sequence[Turn]) -> float:
        """How many memories the builder's service made; none where the model's answers were of no use."""
        system = self._store
        model = system.answerer.model if isinstance(system.answerer, ModelAnswerer) else None
        builder = QuotingBuilder() if model is None else MemoryBuilder(LocalCompleter(
            lambda prompts: model([[{"role": "user", "content": prompt}] for prompt in prompts])
        ))  # fmt: skip
        try:
            return float(len(system.service.remember(conversation, builder, system.scope, "expert")))
        except CompletionError:
            return 0.0

    @property
    def _store(self) -> StoreSystem:
        assert isinstance(self._system, StoreSystem)
        return self._system

    def _injected(self, record: Record, at: float) -> list[Memory]:
        """What the search service takes: the best of each kind."""
        system = self._store
        system.now = at
        search = MemorySearch(system.store)
        best = best_of_kinds(search, system.rules.scorer, record.wording(), system.scope, at)
        system.service.count_recalls((memory.scope, memory.id) for memory in best)
        return best

    def _reply(
        self, record: Record, at: float, memories: Sequence[Memory], hints: Sequence[str] = (), again: bool = False
    ) -> str:
        truth = f"{LETTERS[record.right]}) {record.options[record.right]}"
        question = Question(record.wording(hints, again), at, truth, record.options, _FORM)
        recalled = tuple(Recalled(one, one.veracity, one.uncertainty, 1.0, Action.USE) for one in memories)
        if isinstance(self._system, StoreSystem):
            return self._system.answerer([Asked(question, recalled, False)])[0]
        return self._system.answer([question])[0].text

    def _grade(self, record: Record, reply: str, number: str) -> bool:
        chosen = record.chosen(reply)
        printed, coverage = coverage_scores(record.reference, reply, self._similarity)
        key = key_point_coverage(record.reference, reply)
        figures = {
            "right": chosen == record.right, "wrong": chosen not in (None, record.right), "ics": coverage,
            "printed": printed, "kpcs": key, "aics": information_capture(coverage, key), "words": len(words(reply)),
        }  # fmt: skip
        for name, value in figures.items():
            self.values[f"{name}{number}"].append(float(value))
        return chosen == record.right

    def _give_feedback(self, memories: Sequence[Memory], right: bool) -> None:
        """The asker says of what was injected whether it served; what the retention policy makes of it (appendix 1)."""
        system = self._store
        for number, memory in enumerate(memories):
            voice = MemorySource("user", f"asker {len(self.replies)} {number}", 0.7)
            system.service.feedback(system.scope, memory.id, right, voice)
            now = system.store.get(system.scope, memory.id)
            trust = mark.trust(self._trust.get(now.id, mark.INITIAL_TRUST), now.correct_count, now.recall_count)
            self._trust[now.id] = trust
            kept = mark.retains(trust, mark.persistence(now.recall_count, now.incorrect_count))
            self.values["kept"].append(float(kept))


def _mistaken(record: Record) -> list[Turn]:
    """A user talks the assistant into a wrong option."""
    place = (record.right + 1) % len(record.options)
    wrong = f"{LETTERS[place]}) {record.options[place]}."
    turns = [Turn("user", f"The right answer is {wrong}"), Turn("assistant", wrong)]
    return [Turn("user", record.wording()), Turn("assistant", "-"), *turns]


def _cosines(encoder: RememberedTexts, texts: Sequence[str]) -> np.ndarray:
    """Those of texts, by an encoder of unit vectors."""
    vectors = encoder.encode_passages(texts)
    return np.asarray(vectors @ vectors.T)
