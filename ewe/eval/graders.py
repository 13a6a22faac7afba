"""Who says what an answer claims and whether it is so: a judge with evidence, or the built-in world itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewe.checked import NO_CLAIM, CheckedSentence
from ewe.checking import check_text
from ewe.errors import JudgeError
from ewe.eval.prompt_sets import Item, PromptSet
from ewe.protocols import Verifier
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.source import PassageSource
from ewe.types import Claim, Verdict
from ewe.world.grader import grade
from ewe.world.people import Fact
from ewe.world.world import World, WorldPrompt

WORLD_SETTINGS = ("scheduler.max_num_seqs=32",)


class JudgeGrader:
    """A verifier that played no part in writing, over evidence of its own."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def claims(self, item: Item, text: str) -> tuple[list[Claim], int]:
        """Every claim of the text with the verifier's verdict; raises JudgeError if the verifier failed."""
        checked = check_text(text, self._verifier, item.question)
        if checked.error:
            raise JudgeError(checked.error)
        return list(checked.claims), sum(map(_is_unread, checked.sentences))


class WorldGrader:
    """Exact: a fact that the world knows is supported, any other is refuted. prompts: by the item's id."""

    def __init__(self, world: World, prompts: Mapping[str, WorldPrompt]) -> None:
        self._world, self._prompts = world, prompts

    def claims(self, item: Item, text: str) -> tuple[list[Claim], int]:
        """Every fact that the text states, once."""
        found = grade(self._world, self._prompts[item.id], text)
        stated = [(fact, Verdict.SUPPORTED) for fact in found.true] + [(fact, Verdict.REFUTED) for fact in found.false]
        return sorted((_claim(*item) for item in stated), key=lambda claim: claim.text), len(found.unparsed)


Grader = JudgeGrader | WorldGrader
"""Gives the judged claims of a text and how many of its sentences could not be read; raises EWEError."""


@dataclass(frozen=True, slots=True)
class Part:
    """Prompts with one grader; datastore: what all systems retrieve from (None: what their settings name)."""

    items: Sequence[Item]
    grader: Grader
    datastore: PassageSource | None = None


def world_parts(seeds: Sequence[int], people: int, poisoned: float = 0.0) -> tuple[PromptSet, list[Part]]:
    """Lives of `people` people in the world of each seed; poisoned: share of false passages. Raises ConfigError."""
    parts = []
    for seed in seeds:
        world = World.generate(seed, people, poisoned)
        prompts = {f"{seed}/{number}": prompt for number, prompt in enumerate(world.prompts(("life",)))}
        items = tuple(Item(name, prompt.text, prompt.text, seed) for name, prompt in prompts.items())
        parts.append(Part(items, WorldGrader(world, prompts), Datastore(world.passages)))
    name = f"world, {poisoned:.0%} poisoned" if poisoned else "world"
    return PromptSet(name, tuple(item for part in parts for item in part.items)), parts


def _claim(fact: Fact, verdict: Verdict) -> Claim:
    return Claim(" ".join(filter(None, (fact.subject, fact.relation, fact.about, fact.value))), verdict=verdict)


def _is_unread(checked: CheckedSentence) -> bool:
    """Whether a sentence without claims has none because something went wrong."""
    return not checked.sentence.claims and (checked.sentence.reason != NO_CLAIM or bool(checked.notes))
