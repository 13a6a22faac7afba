"""The built-in demonstration: its world and its datastore."""

from functools import cache

from ewe.evaluation.world.world import World
from ewe.retrieval.datastore import Datastore

SEED = 7
NUM_PEOPLE = 60
_EXAMPLES = (45, 18, 35, 50, 43)


@cache
def load_world() -> World:
    """The world that `ewe demo` and the "builtin" datastore tell of; its people are in no training."""
    return World.generate(SEED, NUM_PEOPLE)


@cache
def builtin_datastore() -> Datastore:
    """The passages of the built-in world."""
    return Datastore(load_world().passages)


def example_prompts() -> list[str]:
    """Prompts about people of the built-in world with whom the model is known to need correction."""
    lives = load_world().prompts(kinds=("life",))
    return [lives[number].text for number in _EXAMPLES]
