"""The built-in world as a set of prompts with an exact grader: lives of people whom no training has seen."""

from __future__ import annotations

from collections.abc import Sequence

from ewe.eval.factuality_run import Part
from ewe.eval.graders import WorldGrader
from ewe.eval.prompt_sets import Item, PromptSet
from ewe.retrieval.datastore import Datastore
from ewe.world.world import World

BATCH_SETTINGS = ("scheduler.max_num_seqs=32",)


def world_parts(seeds: Sequence[int], people: int, poisoned: float = 0.0) -> tuple[PromptSet, list[Part]]:
    """A life of every one of `people` people in the world of each seed, which has passages and a grader of its own.

    poisoned: the share of passages that state something false. Raises ConfigError for a world that cannot be.
    """
    parts = []
    for seed in seeds:
        world = World.generate(seed, people, poisoned)
        prompts = {f"{seed}/{number}": prompt for number, prompt in enumerate(world.prompts(("life",)))}
        items = tuple(Item(name, prompt.text, prompt.text, seed) for name, prompt in prompts.items())
        parts.append(Part(items, WorldGrader(world, prompts), Datastore(world.passages)))
    name = f"world, {poisoned:.0%} poisoned" if poisoned else "world"
    return PromptSet(name, tuple(item for part in parts for item in part.items)), parts
