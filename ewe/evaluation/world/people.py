"""People and the facts about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from random import Random

from ewe.evaluation.world import names
from ewe.evaluation.world.names import Gender, Split

SLOTS_BY_TOPIC: dict[str, tuple[str, ...]] = {
    "birth": ("birth_year", "birth_place"),
    "occupation": ("occupation",),
    "school": ("school", "teacher"),
    "institute": ("institute", "institute_year"),
    "work": ("work", "work_year"),
    "work2": ("work2", "work2_year"),
    "invention": ("invention", "invention_year"),
    "prize": ("prize", "prize_year"),
    "prize2": ("prize2", "prize2_year"),
    "expedition": ("expedition", "expedition_year"),
    "residence": ("residence",),
    "death": ("death_year",),
}
TOPIC_OF_SLOT = {slot: topic for topic, slots in SLOTS_BY_TOPIC.items() for slot in slots}
SLOTS = tuple(TOPIC_OF_SLOT)

YEARS_AFTER_BIRTH: dict[str, tuple[int, int]] = {
    "institute_year": (22, 40),
    "work_year": (22, 38),
    "work2_year": (39, 60),
    "invention_year": (24, 58),
    "prize_year": (26, 42),
    "prize2_year": (43, 61),
    "expedition_year": (20, 55),
    "death_year": (62, 92),
}
FIRST_BIRTH_YEAR, LAST_BIRTH_YEAR = 1760, 1930
_MAX_YEARS_OFF = 15  # of a lie


def relation_of(slot: str) -> str:
    """The relation that a slot is one instance of: a person's two works share the relation "work"."""
    return slot.replace("2", "")


def second_item(slot: str) -> str:
    """The same slot of the person's other work or prize; slots that exist once come back unchanged."""
    for kind in ("work", "prize"):
        if slot.startswith(kind + "2"):
            return slot.replace("2", "", 1)
        if slot.startswith(kind):
            return slot.replace(kind, kind + "2", 1)
    return slot


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing said of one person; about: for the year of a work or prize, which of the two; empty otherwise."""

    subject: str
    relation: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class Person:
    """A person with one value per slot; values of a lie differ from those of the true person of the same name."""

    name: str
    values: Mapping[str, str] = field(hash=False)

    @cached_property
    def gender(self) -> Gender:
        """Which pronoun stands for the person."""
        return names.gender_of(self.name)

    @property
    def surname(self) -> str:
        """The last word of the name."""
        return self.name.rsplit(" ", 1)[1]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All facts about the person, one per slot."""
        return tuple(self.fact(slot) for slot in SLOTS)

    def fact(self, slot: str) -> Fact:
        """The fact that a slot holds."""
        item = slot.removesuffix("_year")
        about = self.values[item] if slot != item and relation_of(item) in ("work", "prize") else ""
        return Fact(self.name, relation_of(slot), self.values[slot], about)

    def with_value(self, slot: str, value: str) -> Person:
        """A copy that differs in one slot."""
        return Person(self.name, {**self.values, slot: value})


@dataclass(frozen=True)
class EntityPool:
    """The places, schools, prizes and so on that the people of one world share, and the old teachers."""

    things: Mapping[str, tuple[str, ...]] = field(hash=False)
    elders: tuple[str, ...]
    split: Split
    seed: int

    @classmethod
    def draw(cls, rng: Random, split: Split, size: int) -> EntityPool:
        """A pool with `size` towns and half as many of each other kind; at least 4, so that values can be wrong."""
        half = max(4, size // 2)
        kinds = {
            "school": names.SCHOOL_KINDS,
            "institute": names.INSTITUTE_KINDS,
            "prize": names.PRIZE_KINDS,
            "expedition": names.EXPEDITION_KINDS,
        }
        things = {slot: _distinct(rng, half, partial(names.named_thing, kinds=kind)) for slot, kind in kinds.items()}
        things["town"] = _distinct(rng, max(4, size), names.town_name)
        elders = _distinct(rng, 4, lambda rng: names.person_name(rng, split))
        return cls(things, elders, split, rng.getrandbits(32))

    def seat(self, title: str) -> str:
        """The town where a school, institute, ... stands; always the same one for the same title."""
        towns = self.things["town"]
        return towns[(sum(map(ord, title)) + self.seed) % len(towns)]

    def draw_value(self, rng: Random, slot: str) -> str:
        """A value for a slot that is not a year (works and inventions are always new)."""
        relation = relation_of(slot)
        if relation == "work":
            return names.work_title(rng)
        if relation == "invention":
            return names.named_thing(rng, names.INVENTION_KINDS)
        if relation == "occupation":
            return rng.choice(names.OCCUPATIONS)
        if relation == "teacher":
            return rng.choice(self.elders)
        return rng.choice(self.things["town" if relation in ("birth_place", "residence") else relation])


def draw_person(rng: Random, pool: EntityPool, name: str | None = None) -> Person:
    """A person with a value for every slot; the teacher is one of the pool's elders."""
    name = name or names.person_name(rng, pool.split)
    return fill_person(rng, pool, name, rng.randint(FIRST_BIRTH_YEAR, LAST_BIRTH_YEAR), {})


def fill_person(rng: Random, pool: EntityPool, name: str, birth: int, elders: Mapping[str, int]) -> Person:
    """A person of the given name and year of birth with values drawn for all other slots.

    elders: years of birth of people of whom one becomes the teacher, if any of them is of a fitting age.
    """
    values = {"birth_year": str(birth)}
    for slot in SLOTS[1:]:
        if slot in YEARS_AFTER_BIRTH:
            values[slot] = str(birth + rng.randint(*YEARS_AFTER_BIRTH[slot]))
        else:
            values[slot] = _unused(rng, pool, slot, values)
    teachers = [other for other, year in elders.items() if 18 <= birth - year <= 50]
    if teachers:
        values["teacher"] = rng.choice(teachers)
    return Person(name, values)


def wrong_value(rng: Random, person: Person, slot: str, pool: EntityPool) -> str:
    """A value of the slot's kind that none of the person's slots holds."""
    taken = set(person.values.values())
    while True:
        value = _wrong_year(rng, person.values[slot]) if slot.endswith("_year") else pool.draw_value(rng, slot)
        if value not in taken:
            return value


def lie_about(rng: Random, person: Person, slots: tuple[str, ...], pool: EntityPool) -> Person:
    """The person with a wrong value in one of `slots`."""
    slot = rng.choice(slots)
    return person.with_value(slot, wrong_value(rng, person, slot, pool))


def _wrong_year(rng: Random, year: str) -> str:
    return str(int(year) + rng.choice((-1, 1)) * rng.randint(1, _MAX_YEARS_OFF))


def _unused(rng: Random, pool: EntityPool, slot: str, values: Mapping[str, str]) -> str:
    """A value that the person does not have in another slot (two works, two prizes, home and birthplace differ)."""
    while (value := pool.draw_value(rng, slot)) in values.values():
        pass
    return value


def _distinct(rng: Random, count: int, draw: Callable[[Random], str]) -> tuple[str, ...]:
    values: dict[str, None] = {}
    while len(values) < count:
        values[draw(rng)] = None
    return tuple(values)
