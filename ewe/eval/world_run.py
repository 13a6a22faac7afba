"""Running the systems over people that no training has seen, and grading what they write.

Owns: the runs and the figures. Knows LLM, the built-in world and its grader; draws and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ewe.client import resolve_config
from ewe.engine.loader import LoadedModel, load_model
from ewe.eval.veriscore import ClaimCounts, median_claims, veriscore
from ewe.eval.world_systems import Report, Score, System
from ewe.llm import LLM
from ewe.retrieval.datastore import Datastore
from ewe.sampling import SamplingParams
from ewe.world.grader import Grade, grade
from ewe.world.world import World

_BATCH_SETTINGS = ("scheduler.max_num_seqs=32",)


@dataclass(frozen=True, slots=True)
class _Run:
    grades: list[Grade]
    rewritten: int
    tokens: int
    seconds: float

    @property
    def counts(self) -> list[ClaimCounts]:
        """The facts of each answer as VeriScore counts claims: each once, true ones as supported."""
        return [ClaimCounts(len(item.true), item.num_stated) for item in self.grades]


def evaluate(
    systems: Sequence[System],
    seeds: Sequence[int],
    people: int,
    settings: Sequence[str] = (),
    max_tokens: int = 256,
    on_answer: Callable[[System, int], None] = lambda system, seed: None,
) -> Report:
    """Lives of `people` people per seed under every system, graded against the world of that seed.

    settings: assignments on top of the built-in setup, for all systems; on_answer is called after each answer. Every
    answer of every system counts for K, the median number of facts stated.
    """
    loaded = load_model(resolve_config("builtin", None).override(settings).model)
    runs = {
        system.name: [_run(system, seed, people, settings, max_tokens, loaded, on_answer) for seed in seeds]
        for system in systems
    }
    k = median_claims(item for per_seed in runs.values() for run in per_seed for item in run.counts)
    scores = {name: tuple(_score(run, k) for run in per_seed) for name, per_seed in runs.items()}
    return Report(k, tuple(seeds), people, scores)


def _run(
    system: System,
    seed: int,
    people: int,
    settings: Sequence[str],
    max_tokens: int,
    loaded: LoadedModel,
    on_answer: Callable[[System, int], None],
) -> _Run:
    world = World.generate(seed, people, system.poisoned)
    prompts = world.prompts(("life",))
    base = resolve_config("builtin", None).override((*_BATCH_SETTINGS, *settings, *system.settings))
    config = base.model_copy(update={"datastore": None, "verifier": base.verifier if system.has_verifier else "none"})
    datastore = Datastore(world.passages) if system.has_datastore else None
    with LLM(config=config, datastore=datastore, loaded=loaded) as llm:
        begin = time.monotonic()
        answers = llm.generate(
            [prompt.text for prompt in prompts],
            SamplingParams(max_tokens=max_tokens, seed=seed),
            on_result=lambda number, generation: on_answer(system, seed),
        )
        seconds = time.monotonic() - begin
    return _Run(
        grades=[grade(world, prompt, answer.text) for prompt, answer in zip(prompts, answers, strict=True)],
        rewritten=sum(answer.stats.rewrites for answer in answers),
        tokens=sum(answer.stats.tokens_kept for answer in answers),
        seconds=seconds,
    )


def _score(run: _Run, k: float) -> Score:
    grades = run.grades
    stated = sum(item.num_stated for item in grades)
    false = sum(len(item.false) for item in grades)
    sentences = sum(len(item.sentences) for item in grades)
    figures = veriscore(run.counts, k)
    return Score(
        answers=len(grades),
        facts_stated=stated,
        false_facts=false,
        false_share=false / max(stated, 1),
        precision=figures.precision,
        recall=figures.recall,
        f1=figures.f1,
        sentences=sentences,
        unparsed_share=sum(len(item.unparsed) for item in grades) / max(sentences, 1),
        rewritten=run.rewritten,
        tokens_per_s=run.tokens / run.seconds,
    )
