"""Lies: people with one wrong value, for passages that cannot be believed."""

from __future__ import annotations

from random import Random

from ewe.world.people import EntityPool, Person

MAX_YEARS_OFF = 15


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
    return str(int(year) + rng.choice((-1, 1)) * rng.randint(1, MAX_YEARS_OFF))
