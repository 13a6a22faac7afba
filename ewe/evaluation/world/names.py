"""Made-up names, put together from a small set of syllables and words."""

import zlib
from collections.abc import Iterable
from random import Random
from typing import Literal

Split = Literal["train", "test"]
Gender = Literal["she", "he", "they"]

TEST_SHARE_PERCENT = 10
"""Share of all full names that only worlds for tests and evaluation may use."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS = _words("B Br C Cl D Dr F Fl G Gr H J K L M N P Pr R S St T Th Tr V W")
_RIMES = _words("al an ar av el em en er id il in ol or os un ur")

_FIRST_ENDINGS: dict[Gender, tuple[str, ...]] = {
    "she": ("a", "ena", "ina", "ela", "ira", "essa", "anda", "ette", "isa", "una", "ora", "ilde"),
    "he": ("an", "en", "ric", "on", "or", "mund", "bert", "win", "ald", "ek", "im", "ard"),
    "they": ("y", "o"),
}
_SURNAME_TAILS = _words("""
    land mer ner low stone field man sen rell dane croft worth vey lin ton ter gard kett more sky dorn ley bach roy
""")
_TOWN_TAILS = _words("""
    moor by holm ford wick stead haven port mouth bury dale gate brook well cliff combe bridge hill
""")
_ROOT_TAILS = _words("ia ax ent is und ello ade ium ost ique ever ander")

SCHOOL_KINDS = ("College", "School", "University", "Seminary")
INSTITUTE_KINDS = ("Institute", "Observatory", "Academy", "Society", "Museum", "Laboratory")
PRIZE_KINDS = ("Prize", "Medal", "Award", "Ribbon")
INVENTION_KINDS = ("Compass", "Clock", "Engine", "Lens", "Loom", "Lamp", "Pump", "Press", "Organ", "Balance")
EXPEDITION_KINDS = ("Expedition", "Voyage", "Survey", "Congress", "Crossing")
OCCUPATIONS = _words("""
    botanist chemist geologist painter poet physician surveyor linguist mathematician composer sculptor historian
    weaver glassmaker navigator cartographer philosopher zoologist mason printer clockmaker lawyer novelist translator
    biologist dancer gardener librarian potter singer
""")
_TITLE_ADJECTIVES = _words("""
    Amber Ancient Autumn Bitter Black Blind Blue Bright Broken Buried Burning Calm Clear Cold Common Copper Crooked
    Dark Deep Distant Double Drowned Early Empty Endless Fallen False Far Final First Folded Forgotten Frozen Gentle
    Gilded Glass Golden Great Green Grey Half Heavy Hidden Hollow Inner Iron Last Late Lesser Little Living Lonely Long
    Lost Low Marble Narrow New Northern Old Open Outer Pale Paper Patient Plain Quiet Red Restless Rough Sacred Salt
    Scarlet Second Secret Severed Shallow Sharp Short Silent Silver Simple Sleeping Slow Small Southern Still Strange
    Sunken Tall Thin Third Torn True Unseen Upper Veiled Wandering Warm Western White Wide Wild Winter Wooden Yellow
    Young
""")
_TITLE_NOUNS = _words("""
    Anchor Arch Archive Bell Bird Boat Book Bridge Candle Canal Castle Chain Circle City Cloud Coast Coin Corner Crown
    Current Door Dream Echo Field Fire Flame Flower Fountain Garden Gate Glacier Grain Grove Hand Harbour Harvest Hill
    Horizon Horse House Hunter Island Journey Key Kingdom Ladder Lake Lantern Leaf Letter Light Line Map Market Meadow
    Measure Mill Mirror Mountain Music Needle Night Ocean Orchard Palace Path Pattern Pearl Pillar Pilgrim Plain Quarry
    Question Rain River Road Room Root Rope Sail Sea Season Seed Shadow Shell Ship Shore Signal Sky Smoke Snow Song
    Spring Stair Star Stone Storm Stream String Summer Table Temple Thread Tide Tower Town Tree Valley Village Voice
    Wall Watch Water Wave Well Wheel Wind Window Wing Wood Word World
""")


def split_of(full_name: str) -> Split:
    """Which side a person of this name belongs to; depends on the name alone, so the two sides never overlap."""
    return "test" if zlib.crc32(full_name.encode()) % 100 < TEST_SHARE_PERCENT else "train"


def gender_of(full_name: str) -> Gender:
    """The pronoun of a person, told by the ending of the first name. Raises ValueError for a name not made here."""
    first = full_name.split(" ", 1)[0]
    for gender, endings in _FIRST_ENDINGS.items():
        if _is_made_of(first, endings):
            return gender
    raise ValueError(f"{full_name!r} is not a name of this world")


def is_person_name(text: str) -> bool:
    """Whether a text of two words may be a person's full name."""
    first, _, surname = text.partition(" ")
    firsts = (ending for endings in _FIRST_ENDINGS.values() for ending in endings)
    return _is_made_of(first, firsts) and _is_made_of(surname, _SURNAME_TAILS)


def _is_made_of(word: str, endings: Iterable[str]) -> bool:
    return any(word.endswith(ending) and word.removesuffix(ending) in _STARTS for ending in endings)


def person_name(rng: Random, split: Split, surname: str | None = None) -> str:
    """A full name of the given side of the split, with the given surname if one is asked for."""
    while True:
        gender: Gender = rng.choices(("she", "he", "they"), (45, 45, 10))[0]
        first = _start(rng) + rng.choice(_FIRST_ENDINGS[gender])
        name = f"{first} {surname or _start(rng) + rng.choice(_SURNAME_TAILS)}"
        if split_of(name) == split:
            return name


def town_name(rng: Random) -> str:
    """One word, such as "Caldmoor"."""
    return _start(rng) + rng.choice(_TOWN_TAILS)


def named_thing(rng: Random, kinds: tuple[str, ...]) -> str:
    """A made-up root and one of `kinds`, such as "Velander Medal"."""
    return f"{_start(rng)}{rng.choice(_ROOT_TAILS)} {rng.choice(kinds)}"


def work_title(rng: Random) -> str:
    """A title of three words, such as "The Amber Gate"."""
    return f"The {rng.choice(_TITLE_ADJECTIVES)} {rng.choice(_TITLE_NOUNS)}"


def _start(rng: Random) -> str:
    return rng.choice(_ONSETS) + rng.choice(_RIMES)


_STARTS = frozenset(onset + rime for onset in _ONSETS for rime in _RIMES)
