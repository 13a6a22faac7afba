"""What each policy costs in throughput, and whether it holds up the requests beside it.

16 prompts at once under every policy; beside them the same engine writes plain texts that no policy steers. Between two
of their tokens lie a pass and whatever else the engine's thread does. The longest such gap is compared with the one
beside plain prompts that fill a pass: no policy may hold up others for longer than long prompts do. The median
answer's first text is compared with that of `ra`. Asks for lives of people of the built-in world; with --model FOLDER a
chat model is asked about articles of Wikipedia.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from benchmarks.common import Sections, parse_arguments
from ewe import LLM, SamplingParams
from ewe.config import resolve_config
from ewe.config.registry import POLICIES
from ewe.config.setting_names import WIKIPEDIA_SAMPLE
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.models.loader import load_model
from ewe.engine.request import Request
from ewe.evaluation.world.world import World
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.open_retriever import open_source

_BYSTANDER = "bystander"


class Bystander:
    """Plain texts of one word, one after the other; gaps: seconds between two tokens of the same text."""

    def __init__(self, llm: LLM) -> None:
        self.gaps: list[float] = []
        self._client = llm.client
        self._last: float | None = None
        self._goes_on = True
        word, *_ = llm.client.engine.input_processor.encode(" a", add_special_tokens=False)
        self._params = SamplingParams(max_tokens=200, ignore_eos=True, logit_bias={word: 100.0})

    def start(self) -> None:
        """Begins a text that no policy steers."""
        request = Request("A", self._params, listener=self._hear, is_plain=True)
        sequence = self._client.engine.input_processor.build(_BYSTANDER, request)
        self._client._loop.do(lambda core: core.active.add(sequence))

    def stop(self) -> None:
        """Ends the text that is being written."""
        self._goes_on = False
        self._client._loop.do(lambda core: core.active.abort(_BYSTANDER))

    def _hear(self, event: StreamEvent) -> None:
        now, last = time.perf_counter(), self._last
        if event.kind == "draft":
            self._last = now
            if last is not None:
                self.gaps.append(now - last)
        elif event.kind == "finish":
            self._last = None
            if self._goes_on:
                self.start()


@contextmanager
def bystander(llm: LLM) -> Iterator[Bystander]:
    """A bystander that is being written already."""
    beside = Bystander(llm)
    beside.start()
    while not beside.gaps:
        time.sleep(0.001)
    beside.gaps.clear()
    yield beside
    beside.stop()


def full_pass_s(llm: LLM) -> float:
    """The bystander's longest gap beside prompts that fill a pass; llm: under the policy plain."""
    longest = llm.client.engine.loaded.max_model_len - 1
    budget = llm.client.engine.config.scheduler.max_num_batched_tokens
    prompts = [[5] * min(longest, budget - begin) for begin in range(0, budget, longest)]
    with bystander(llm) as beside:
        llm.generate(prompts, SamplingParams(max_tokens=1))
    return max(beside.gaps)


class FirstText:
    """When an answer shows its first text, in seconds from now; infinite until then."""

    def __init__(self) -> None:
        self.seconds = math.inf
        self._start = time.perf_counter()

    def hear(self, event: StreamEvent) -> None:
        """Takes the first event with text."""
        if event.kind == "text" and self.seconds == math.inf and event.data["text"].strip():
            self.seconds = time.perf_counter() - self._start


class Run(NamedTuple):
    """Tokens of all answers per second; seconds to the median first text; the bystander's median and longest gap."""

    tokens_per_s: float
    first_text_s: float
    median_gap_s: float
    longest_gap_s: float


def write(llm: LLM, prompts: Sequence[str], max_tokens: int) -> Run:
    """All answers written at once, beside a bystander."""
    params = SamplingParams(max_tokens=max_tokens, seed=0)
    llm.client.forget_unused_units()
    with bystander(llm) as beside:
        start = time.perf_counter()
        if llm.has_chat_template:
            requests = llm.chat_requests([[{"role": "user", "content": text}] for text in prompts], params)
        else:
            requests = [Request(prompt, params) for prompt in prompts]
        first = [FirstText() for _ in requests]
        heard = [replace(request, listener=one.hear) for request, one in zip(requests, first, strict=True)]
        answers = llm.client.run(heard, None)
        wall_s = time.perf_counter() - start
    wrong = next((answer.error for answer in answers if answer.error), "")
    if wrong:
        raise RuntimeError(wrong)
    tokens = sum(answer.stats.tokens_kept for answer in answers)
    first_text_s = statistics.median(one.seconds for one in first)
    return Run(tokens / wall_s, first_text_s, statistics.median(beside.gaps), max(beside.gaps))


def measure(
    open_llm: Callable[[str], LLM],
    policy: str,
    prompts: Sequence[str],
    max_tokens: int,
    repeats: int,
    base: dict[str, float],
) -> dict[str, float]:
    """A policy's figures; `base` takes what those of plain and ra are, which come first."""
    with open_llm(policy) as llm:
        write(llm, prompts[:1], max_tokens)  # loads what retrieves and checks
        runs = [write(llm, prompts, max_tokens) for _ in range(repeats)]
        if policy == "plain":
            base["full_pass_s"] = statistics.median(full_pass_s(llm) for _ in range(repeats))
    run = Run(*(statistics.median(values) for values in zip(*runs, strict=True)))
    base.setdefault("rate", run.tokens_per_s)
    if policy == "ra":
        base["first_text_s"] = run.first_text_s
    first_text = {f"{policy}_first_text_s": round(run.first_text_s, 3)}
    if "first_text_s" in base:
        first_text[f"{policy}_first_text_over_ra"] = round(run.first_text_s / base["first_text_s"], 3)
    return {
        f"{policy}_tokens_per_s": round(run.tokens_per_s, 1),
        f"{policy}_throughput_over_plain": round(run.tokens_per_s / base["rate"], 3),
        **first_text,
        f"{policy}_bystander_median_gap_ms": round(1e3 * run.median_gap_s, 2),
        f"{policy}_bystander_longest_gap_ms": round(1e3 * run.longest_gap_s, 1),
        f"{policy}_longest_gap_over_full_pass": round(run.longest_gap_s / base["full_pass_s"], 3),
    }


def _setup(model: str, num_prompts: int) -> tuple[list[str], Datastore | str]:
    """Prompts, and the passages that answer them."""
    if model == "builtin":
        world = World.generate(100, max(num_prompts, 2))
        return [prompt.text for prompt in world.prompts(("life",))][:num_prompts], Datastore(world.passages)
    titles = sorted({passage.title for _, passage in open_source(WIKIPEDIA_SAMPLE).scan()})
    return [f"Tell me about {title}." for title in titles[:num_prompts]], WIKIPEDIA_SAMPLE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What this benchmark asks beside the common arguments."""
    parser.add_argument("--model", default="builtin", help="the built-in model, or a chat model")
    parser.add_argument("--policy", action="append", choices=POLICIES.names, help="repeatable; default: all")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, add_arguments)
    num_prompts, max_tokens = (2, 8) if arguments.smoke else (16, 96)
    policies = arguments.policy or (("rag", "cove") if arguments.smoke else POLICIES.names)
    prompts, source = _setup(arguments.model, num_prompts)
    changes = [f"model.device={arguments.device}", f"scheduler.max_num_seqs={2 * num_prompts}"]
    if arguments.smoke:
        changes.append("scheduler.max_num_batched_tokens=128")
    config = resolve_config(arguments.model, None).override(changes)
    loaded = load_model(config.model)

    def open_llm(policy: str) -> LLM:
        return LLM(config=config.override((f"policy={policy}",)), loaded=loaded, datastore=source)

    settings = {"model": arguments.model, "prompts": num_prompts, "answer_tokens": max_tokens}
    sections = Sections("policy_throughput", arguments, settings)
    base: dict[str, float] = {}
    for policy in dict.fromkeys(("plain", "ra", *policies)):
        job = partial(measure, open_llm, policy, prompts, max_tokens, arguments.repeats, base)
        sections.take(policy, job)
    sections.close()


if __name__ == "__main__":
    main()
