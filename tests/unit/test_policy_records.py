"""All that the engine's policies do, event for event, is what was recorded: no restructuring may change it.

Texts, verdicts, counters, traces and streams, without times, of a model whose keys and values depend on all they saw.
After a change that is meant: `python tests/unit/test_policy_records.py` from the repository's root records anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [".", "kernels", "tests", "tests/unit"]

import numpy as np
import pytest
import torch
from engine_bench import DeepRunner, GatedBench, Latencies
from engine_parts import Judge, Library, number, sentences
from mock_engine import ALPHABET

from ewe.config import Config
from ewe.engine.model_executor.model_runner import ForwardRow
from ewe.engine.request import Request
from ewe.types import (
    Claim,
    Evidence,
    Generation,
    Passage,
    ScoredPassage,
    Verdict,
    VerificationRequest,
    VerificationResult,
)
from ewe.types.sampling_params import SamplingParams

RECORDS = Path(__file__).with_name("policy_records.json")
PROMPTS = ("Tell me of it", "of a", "who is it")
AT_ONCE = Latencies()
LATE = Latencies((0, 2), (0, 30, 3, 60))
# Times, and settings, which come and go.
_LEFT_OUT = {"latency_s", "waited_s", "queued_s", "config", "settings", "sampling", "closed_world", "engine"}


class Failing:
    """Fails with every third call; what it answers else, another part does."""

    def __init__(self, part: Any) -> None:
        self._part, self._calls = part, 0

    def _count(self) -> None:
        self._calls += 1
        if self._calls % 3 == 2:
            raise ConnectionError("gone")

    def retrieve(self, queries: Sequence[str], top_k: int) -> Any:
        self._count()
        return self._part.retrieve(queries, top_k)

    def verify(self, requests: Sequence[VerificationRequest]) -> Any:
        self._count()
        return self._part.verify(requests)


class Repeats(Judge):
    """Finds in some sentences that they repeat an earlier one."""

    def _judge(self, sentence: str) -> VerificationResult:
        if number("repeats", sentence) % 3 == 0:
            return VerificationResult(reason="repeats an earlier sentence")
        return super()._judge(sentence)


class Disputed(Judge):
    """Refutes half of all sentences, always with the same passage, on claims that some evidence supports."""

    def _judge(self, sentence: str) -> VerificationResult:
        chance = number("disputed", sentence) % 100
        verdict = Verdict.REFUTED if chance % 2 else Verdict.SUPPORTED
        passage = Passage("same", "the same again", source="evidence")
        claim = Claim(sentence, 0, len(sentence), verdict, 1.0, (passage.id,), support=chance / 100)
        return VerificationResult((claim,), (Evidence(passage, verdict, 1.0),))


class Forgetful(Library):
    """Finds every passage but believes only some of them."""

    def _find(self, query: str) -> list[ScoredPassage]:
        found = super()._find(query)
        return [ScoredPassage(Passage(h.passage.id, h.passage.text, veracity=h.score % 2), h.score - 3) for h in found]


class Anything:
    """A grammar that allows every text."""

    allowed = np.ones(len(ALPHABET), np.bool_)

    def follow(self, ids: Sequence[int]) -> str:
        return ""

    def allowed_but(self, banned: Sequence[int]) -> Any:
        return self.allowed


class StatesRunner(DeepRunner):
    """Keeps a vector of each token for NEST, which depends on all that the token saw."""

    def _compute(self, row: ForwardRow) -> None:
        super()._compute(row)
        for slot in row.context_slots[-len(row.token_ids) :].tolist():
            seen = self.pool.keys[0][slot, 0, 0].item(), self.pool.values[0][slot, 0, 0].item() % 64
            generator = torch.Generator().manual_seed(number(*seen))
            assert self.pool.states is not None
            self.pool.states[slot] = torch.rand(8, generator=generator)


class StatesBench(GatedBench):
    runner_type = StatesRunner

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        pool = self.runner.pool
        pool.states = torch.zeros(pool.num_blocks * pool.block_size, 8)


@dataclass(frozen=True)
class Case:
    policy: str = "ewe"
    feedback: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)
    retriever: Callable[[], Any] | None = Library
    verifier: Callable[[], Any] | None = Judge
    params: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    latencies: Latencies = AT_ONCE
    prompts: tuple[str, ...] = PROMPTS[:1]
    has_grammar: bool = False
    num_blocks: int = 400


HOT = {"temperature": 0.8, "seed": 11}
OPTIMISTIC = {"mode": "optimistic"}
AHEAD = {"scheduler": {"async_scheduling": True}}
UNSURE = {"flare_min_prob": 0.9, "flare_mask_prob": 0.5}
CASES = {
    "plain": Case("plain"),
    "plain with documents": Case("plain", request={"documents": ["one", "two"]}),
    "plain, no components": Case(retriever=None, verifier=None),
    "a plain request": Case(request={"is_plain": True}),
    "rag": Case("rag", prompts=PROMPTS),
    "rag, n=2": Case("rag", params={**HOT, "n": 2}),
    "rag, failing": Case("rag", retriever=lambda: Failing(Library()), prompts=PROMPTS),
    "rag, small talk": Case("rag", prompts=("Say hi",)),
    "rag, veracity": Case(
        "rag", {"retrieval_threshold": 0.5}, {"memory": {"veracity_weighting": "linear"}}, Forgetful, prompts=PROMPTS
    ),
    "nest": Case("nest", {"nest_passages": 3, "nest_span": 4, "nest_gamma": 1e-4, "nest_delta": 0.9}),
    "nest, seeded, n=2": Case("nest", {"nest_passages": 3, "nest_delta": 0.9}, params={**HOT, "n": 2}),
    "flare": Case("flare", UNSURE, verifier=None, params=HOT, prompts=PROMPTS),
    "flare, greedy": Case("flare", {"flare_min_prob": 1.0, "flare_mask_prob": 0.9}, prompts=PROMPTS),
    "flare, n=2": Case("flare", UNSURE, params={**HOT, "n": 2}),
    "flare, failing": Case("flare", UNSURE, retriever=lambda: Failing(Library()), params=HOT, prompts=PROMPTS),
    "flare, late": Case("flare", UNSURE, params=HOT, prompts=PROMPTS, latencies=Latencies((3, 0, 1))),
    "flare without a retriever": Case("flare", UNSURE, retriever=None),
    "ewe": Case(prompts=PROMPTS),
    "ewe, seeded": Case(params=HOT, prompts=PROMPTS),
    "ewe, n=2": Case(params={**HOT, "n": 2}),
    "ewe, late answers": Case(params=HOT, prompts=PROMPTS, latencies=Latencies((1, 3), (0, 5))),
    "ewe, retriever only": Case(verifier=None, prompts=PROMPTS),
    "ewe, verifier only": Case(retriever=None, params=HOT, prompts=PROMPTS),
    "ewe, small talk": Case(prompts=("Say hi",)),
    "ewe, intervals": Case(feedback={"retrieve_every": 7, "verify_every": 20}, params=HOT, prompts=PROMPTS),
    "ewe, entropy": Case(
        feedback={
            "retrieve_when": "entropy",
            "retrieve_entropy": 0.15,
            "verify_when": "entropy",
            "verify_entropy": 0.4,
        },
        params=HOT,
        prompts=PROMPTS,
    ),
    "ewe, least probability": Case(
        feedback={"retrieve_when": "min_prob", "verify_when": "min_prob", "verify_min_prob": 0.5}, params=HOT
    ),
    "ewe, unsupported": Case(feedback={"rewrite_when": "unsupported"}, params=HOT, prompts=PROMPTS),
    "ewe, repeats": Case(verifier=Repeats, params=HOT, prompts=PROMPTS),
    "ewe, repeats kept": Case(feedback={"on_repeat": "keep"}, verifier=Repeats, params=HOT, prompts=PROMPTS),
    "ewe, one attempt": Case(feedback={"max_attempts": 1}, params=HOT, prompts=PROMPTS),
    "ewe, failing retriever": Case(retriever=lambda: Failing(Library()), params=HOT, prompts=PROMPTS),
    "ewe, failing verifier": Case(verifier=lambda: Failing(Judge()), params=HOT, prompts=PROMPTS),
    "ewe, stop strings": Case(params={**HOT, "stop": ("abc", ". A", "i. D"), "min_tokens": 30}, prompts=PROMPTS),
    "ewe, grammar": Case(
        feedback={"on_exhausted": "drop", "max_attempts": 2},
        verifier=Repeats,
        params=HOT,
        prompts=PROMPTS,
        has_grammar=True,
    ),
    "ewe, disputed": Case(verifier=Disputed, params=HOT, prompts=PROMPTS),
    "ewe, disputed and dropped": Case(
        feedback={"on_exhausted": "drop", "max_attempts": 2}, verifier=Disputed, params=HOT, prompts=PROMPTS
    ),
    "optimistic, disputed": Case(feedback=OPTIMISTIC, verifier=Disputed, params=HOT, prompts=PROMPTS, latencies=LATE),
    "ewe, documents": Case(params=HOT, request={"documents": ["one"]}),
    "ewe, code": Case(prompts=("Tell me\n```\n",), params=HOT),
    "ewe, memory pressure": Case(params={**HOT, "n": 2}, prompts=PROMPTS, num_blocks=90),
}
for _mode in ("blocking", "optimistic"):
    for _end in ("keep_best", "flag", "drop"):
        CASES[f"{_mode}, {_end}"] = Case(
            feedback={"mode": _mode, "on_exhausted": _end, "max_attempts": 2, "verify_every": 3},
            params=HOT,
            prompts=PROMPTS,
            latencies=LATE,
        )
CASES |= {
    "optimistic, greedy, at once": Case(feedback=OPTIMISTIC, prompts=PROMPTS),
    "optimistic, n=2": Case(feedback={**OPTIMISTIC, "verify_every": 1}, params={**HOT, "n": 2}, latencies=LATE),
    "optimistic, ahead": Case(feedback=OPTIMISTIC, groups=AHEAD, params=HOT, prompts=PROMPTS, latencies=LATE),
    "optimistic, repeats": Case(
        feedback={**OPTIMISTIC, "rewrite_when": "unsupported"}, verifier=Repeats, params=HOT, latencies=LATE
    ),
    "optimistic, rare retrieval": Case(
        feedback={**OPTIMISTIC, "retrieve_every": 40, "verify_every": 1},
        params={**HOT, "max_tokens": 120},
        prompts=PROMPTS,
        latencies=Latencies((0, 4), (35, 60)),
    ),
    "optimistic, failing": Case(
        feedback=OPTIMISTIC,
        retriever=lambda: Failing(Library()),
        verifier=lambda: Failing(Judge()),
        params=HOT,
        prompts=PROMPTS,
        latencies=LATE,
    ),
    "optimistic, memory pressure": Case(
        feedback=OPTIMISTIC, params={**HOT, "n": 2}, prompts=PROMPTS, num_blocks=90, latencies=LATE
    ),
}


def run(case: Case) -> list[dict[str, Any]]:
    """What all answers of a case were, with all that happened on the way."""
    memory = {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 2, **case.groups.get("memory", {})}
    values = {"policy": case.policy, "feedback": {"verify_every": 4, **case.feedback}, "cache": {"block_size": 4}}
    config = Config.from_mapping({**values, **case.groups, "memory": memory})
    retriever, verifier = (None if make is None else make() for make in (case.retriever, case.verifier))
    bench_type = StatesBench if case.policy == "nest" else GatedBench
    bench = bench_type(config, retriever, verifier, sentences, num_blocks=case.num_blocks)
    bench.runner.strength = 6.0
    streams: dict[str, list[Any]] = {}
    for name, prompt in enumerate(case.prompts):
        params = SamplingParams(**{"max_tokens": 60, **case.params})
        stream = streams[str(name)] = []
        request = Request(prompt, params, listener=stream.append, **case.request)
        sequence = bench.engine.input_processor.build(str(name), request)
        if case.has_grammar:
            sequence.grammar = Anything()  # type: ignore[assignment]
        bench.core.active.add(sequence)
    results = bench.run_with(case.latencies)
    events = {name: [[e.index, e.kind, e.data] for e in stream] for name, stream in streams.items()}
    answers = [told(generation) for _, generation in sorted(results.items())]
    return json.loads(json.dumps([*answers, {"streams": events}], default=plain))


def told(generation: Generation) -> dict[str, Any]:
    """An answer without times."""
    counts = {f.name: getattr(generation.stats, f.name) for f in fields(generation.stats) if not f.name.endswith("_s")}
    return {
        "text": generation.text,
        "token_ids": generation.token_ids,
        "finish": [generation.finish_reason, generation.error],
        "sentences": [
            [s.text, s.start, s.verdict.value, s.score, s.source_ids, s.attempts, s.removed, s.reason]
            for s in generation.sentences
        ],
        "sources": sorted(generation.sources),
        "stats": counts,
        "trace": [[e.kind, e.num_tokens, e.data] for e in generation.trace],
    }


def plain(value: Any) -> Any:
    """What JSON does not know."""
    return value.value if hasattr(value, "value") else dict(value)


def timeless(value: Any) -> Any:
    """Without times and settings, and with numbers that are the same on every machine."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value


def summary(case: Case) -> dict[str, Any]:
    """What is kept of a case: the texts, the kinds of events, and a digest of everything."""
    record = timeless(run(case))
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
    kinds = Counter(kind for answer in record[:-1] for kind, *_ in answer["trace"])
    return {"texts": [answer["text"] for answer in record[:-1]], "kinds": dict(sorted(kinds.items())), "digest": digest}


@pytest.mark.parametrize("name", CASES)
def test_a_policy_does_what_it_did(name: str) -> None:
    assert summary(CASES[name]) == json.loads(RECORDS.read_text())[name]


def test_nothing_is_recorded_that_is_not_run() -> None:
    assert list(json.loads(RECORDS.read_text())) == list(CASES)


if __name__ == "__main__":
    found = {name: summary(case) for name, case in CASES.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(record)}" for name, record in found.items())
    RECORDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
