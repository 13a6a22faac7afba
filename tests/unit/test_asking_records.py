"""Policies that have further texts written for an answer do, event for event, what was recorded, as the others do.

After a change that is meant: `python tests/unit/test_asking_records.py` from the repository's root records anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [".", "kernels", "tests", "tests/unit"]

import numpy as np
import pytest
import torch
from engine_bench import DeepRunner
from engine_parts import Judge, Library, number, sentences
from mock_engine import ALPHABET, EOS, Bench, CharTokenizer
from test_policy_records import HOT, PROMPTS, Failing, plain, timeless, told

from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.model_executor.text_attention import TextAttention
from ewe.engine.request import Request
from ewe.policies.self_rag_like import TOKENS
from ewe.types.sampling_params import SamplingParams

RECORDS = Path(__file__).with_name("asking_records.json")
PIECES = (*ALPHABET, *"KLMNOPQRSTUVWXYZ?'\"()[]{}/-!`", "Yes", "No", *TOKENS)


class Pieces(CharTokenizer):
    """A token per character, and some for whole words; reflects: whether those of Self-RAG are among them."""

    unk_token_id = None

    def __init__(self, reflects: bool = False) -> None:
        self._hidden = () if reflects else TOKENS

    def __call__(self, text: str, add_special_tokens: bool = True, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": [PIECES.index(char) if char in PIECES else 1 for char in text]}

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        return "".join(PIECES[i] for i in ids if i != EOS and PIECES[i] not in TOKENS)

    def convert_tokens_to_ids(self, name: str) -> int | None:
        return PIECES.index(name) if name in PIECES and name not in self._hidden else None


class AttentiveRunner(DeepRunner):
    """Tells of every text what it attended to, which depends on its tokens."""

    vocabulary = PIECES

    def text_attention(self, slots: Any, prompt: int) -> TextAttention:
        ids, _ = self._read(slots)
        draw = np.random.default_rng(number(ids))
        weights = draw.random((len(ids) - prompt + 1, len(ids)), np.float32)
        return TextAttention(weights, draw.random(len(ids) - prompt, np.float32))


def writes(context: str, units: tuple[str, ...]) -> str:
    """A script: sentences, questions where a plan is asked for, yes or no, and the end after some sentences."""
    head, asked, plan = context.rpartition("Questions:")
    wanted = f"\n1. Who is {'ABC'[number(head) % 3]}?\n2) Where?\n3. So.\n" if number(head) % 3 else "\nNone."
    if asked and "\n\n" not in plan:
        return wanted[len(plan)] if wanted.startswith(plan) and len(plan) < len(wanted) else "\x00"
    if context.endswith("yes or no."):
        return ("Yes", "No")[number(context) % 2]
    if "[Retrieval]" in context and number(context, units) % 4 == 0:
        return TOKENS[number(units, context) % len(TOKENS)]
    return "\x00" if context.endswith(".") and number(context) % 5 == 0 else sentences(context, units)


@dataclass(frozen=True)
class Case:
    policy: str
    groups: dict[str, Any] = field(default_factory=dict)
    retriever: Any = Library
    verifier: Any = Judge
    params: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    prompts: tuple[Any, ...] = PROMPTS[:1]
    reflects: bool = False
    max_model_len: int = 4000


AHEAD = {"scheduler": {"async_scheduling": True}}
PLACED = {"memory": {"placement": "in_prompt"}}
EVERY = ("ra", "dragin", "cove", "cove+retrieval", "self-rag-like", "rewrite-after")
ONE = PROMPTS[2:]
CASES = {name: Case(name, prompts=PROMPTS) for name in EVERY}
CASES |= {f"{name}, seeded, n=2": Case(name, params={**HOT, "n": 2}) for name in EVERY}
CASES |= {f"{name}, alone": Case(name, retriever=None, verifier=None, params=HOT) for name in EVERY}
CASES |= {
    f"{name}, failing": Case(name, {}, lambda: Failing(Library()), lambda: Failing(Judge()), HOT, prompts=ONE)
    for name in EVERY
}
CASES |= {f"{name}, documents": Case(name, params=HOT, request={"documents": ["one", "two"]}) for name in EVERY}
CASES |= {f"{name}, stop strings": Case(name, params={**HOT, "stop": ("f.", ". A")}, prompts=ONE) for name in EVERY}
CASES |= {
    f"{name}, memory in the prompt": Case(
        name, PLACED, params=HOT, prompts=(PlacedPrompt("It is: tell me", "It is: ", "tell me"),)
    )
    for name in EVERY
}
CASES |= {
    "a plain request": Case("cove", request={"is_plain": True}),
    "ra, small talk": Case("ra", prompts=("Say hi",)),
    "ra, little room": Case("ra", max_model_len=120, params={"max_tokens": 70}, prompts=PROMPTS),
    "ra, ahead": Case("ra", AHEAD, params={"logprobs": 2}),
    "cove, a prompt too long": Case("cove", max_model_len=420),
    "cove, ahead, logprobs": Case("cove", AHEAD, params={"logprobs": 2}, prompts=PROMPTS),
    "dragin, short steps": Case("dragin", {"pipeline": {"step_tokens": 9}}, params=HOT, prompts=ONE),
    "self-rag-like, by its tokens": Case("self-rag-like", params=HOT, prompts=PROMPTS, reflects=True),
    "self-rag-like, seldom": Case("self-rag-like", {"pipeline": {"retrieve_prob": 0.9}}, params=HOT, prompts=ONE),
    "rewrite-after, code": Case("rewrite-after", prompts=("Tell me\n```\n",), params=HOT),
}


class RecordBench(Bench):
    """The engine of a case."""

    runner_type = AttentiveRunner

    def __init__(self, config: Config, case: Case) -> None:
        components = (None if make is None else make() for make in (case.retriever, case.verifier))
        super().__init__(config, *components, writes, num_blocks=4000, max_model_len=case.max_model_len)
        self.runner.strength = 8.0
        processor, pool = self.engine.input_processor, self.runner.pool
        processor.tokenizer = Pieces(case.reflects)
        processor.limits = replace(processor.limits, max_model_len=case.max_model_len, vocab_size=len(PIECES))
        if case.policy == "dragin" and case.retriever is not None:
            pool.states = torch.zeros(pool.num_blocks * pool.block_size, 8)

    def ask(self, name: str, request: Request) -> None:
        self.core.active.add(self.engine.input_processor.build(name, request))


def run(case: Case, bench_type: type[Any] = RecordBench) -> list[dict[str, Any]]:
    """What all answers of a case were, with all that happened on the way."""
    memory = {"unit_tokens": 40, "retrieval_units": 3, **case.groups.get("memory", {})}
    pipeline = {"passages": 2, "candidates": 2, "step_tokens": 40, "questions": 2, "dragin_threshold": 0.3}
    pipeline |= case.groups.get("pipeline", {})
    values = {"policy": case.policy, "verifier": "builtin", "cache": {"block_size": 4}, **case.groups}
    config = Config.from_mapping({**values, "memory": memory, "pipeline": pipeline})
    bench = bench_type(config, case)
    streams: dict[str, list[Any]] = {}
    for name, prompt in enumerate(case.prompts):
        stream = streams[str(name)] = []
        params = SamplingParams(**{"max_tokens": 60, **case.params})
        bench.ask(str(name), Request(prompt, params, listener=stream.append, **case.request))
    results = bench.run()
    indices = range(case.params.get("n", 1))
    events = {
        name: [[[e.kind, e.data] for e in stream if e.index == i] for i in indices] for name, stream in streams.items()
    }
    answers = [told(generation) for _, generation in sorted(results.items())]
    return json.loads(json.dumps([*answers, {"streams": events}], default=plain))


def summary(record: list[dict[str, Any]]) -> dict[str, Any]:
    """What is kept of a case: the texts, the kinds of events, and a digest of everything."""
    record = timeless(record)
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
    kinds = Counter(kind for answer in record[:-1] for kind, *_ in answer["trace"])
    return {"texts": [answer["text"] for answer in record[:-1]], "kinds": dict(sorted(kinds.items())), "digest": digest}


@pytest.mark.parametrize("name", CASES)
def test_a_policy_that_asks_does_what_it_did(name: str) -> None:
    assert summary(run(CASES[name])) == json.loads(RECORDS.read_text())[name]


def test_nothing_is_recorded_that_is_not_run() -> None:
    assert list(json.loads(RECORDS.read_text())) == list(CASES)


if __name__ == "__main__":
    found = {name: summary(run(case)) for name, case in CASES.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(record)}" for name, record in found.items())
    RECORDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
