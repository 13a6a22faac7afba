"""The built-in demonstration: its world, its datastore and the place of its model."""

from functools import cache
from pathlib import Path

from ewe.retrieval.datastore import Datastore
from ewe.world.world import World

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


def model_path() -> Path:
    """The directory of the built-in model; it exists in every installed package."""
    return Path(__file__).parent / "model"
