"""Pairs from the built-in world: sentences about people who do not exist, beside passages that tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ewe.evaluation.world.articles import SOURCES, STORIES, tell
from ewe.evaluation.world.names import Split
from ewe.evaluation.world.people import SLOTS_BY_TOPIC, EntityPool, Fact, Person, draw_person, lie_about
from ewe.evaluation.world.wording import phrasings
from judge_training.pairs import Label, Pair

# A person may have other works, prizes, posts, inventions and journeys than those that one passage tells of.
_MANY = frozenset(("work", "prize", "invention", "expedition", "institute"))


def world_pairs(rng: Random, split: Split = "train") -> Iterator[Pair]:
    """Endless pairs about people of `split`, of all three classes; what a lie changes may leave a claim unsettled."""
    while True:
        pool = EntityPool.draw(rng, split, rng.randint(4, 10))
        person, stranger = draw_person(rng, pool), draw_person(rng, pool)
        for _ in range(6):
            topic = rng.choice(STORIES)
            wanted = rng.choice(tuple(Label))
            teller = lie_about(rng, person, SLOTS_BY_TOPIC[topic], pool) if wanted is Label.REFUTED else person
            told_topic = rng.choice(STORIES) if wanted is Label.INCONCLUSIVE else topic
            subject = stranger if wanted is Label.INCONCLUSIVE and rng.random() < 0.4 else person
            told = tell(rng, teller, told_topic, rng.choice(SOURCES), pool, stranger)
            if wanted is Label.INCONCLUSIVE and subject is person:
                subject = _confused(rng, person, rng.choice(SLOTS_BY_TOPIC[topic]), told.facts)
            wording = rng.choice(phrasings(topic, "answer")).fill(subject, other_item=topic.endswith("2"))
            yield Pair(told.text, wording.text, judge_facts(wording.facts, told.facts), told.title)


def _confused(rng: Random, person: Person, slot: str, told: tuple[Fact, ...]) -> Person:
    """The person with something in `slot` that was told of another relation: the journey taken for the prize, the year
    of the one for the year of the other. Unchanged where nothing fits.
    """
    is_year = slot.endswith("_year")
    values = [
        fact.value
        for fact in told
        if fact.subject == person.name and fact != person.fact(slot) and fact.value.isdigit() == is_year
    ]
    return person.with_value(slot, rng.choice(values)) if values else person


def judge_facts(claimed: tuple[Fact, ...], stated: tuple[Fact, ...]) -> Label:
    """What the facts stated say of the facts claimed: refuted if one of them is, supported if all are."""
    if any(_refutes(other, fact, claimed, stated) for fact in claimed for other in stated):
        return Label.REFUTED
    return Label.SUPPORTED if set(claimed) <= set(stated) else Label.INCONCLUSIVE


def _refutes(stated: Fact, claimed: Fact, claims: tuple[Fact, ...], statements: tuple[Fact, ...]) -> bool:
    """Whether the fact stated excludes the fact claimed: another value of something that a person has once."""
    if (stated.subject, stated.relation) != (claimed.subject, claimed.relation) or stated.value == claimed.value:
        return False
    if claimed.relation in _MANY:
        return False
    item = claimed.relation.removesuffix("_year")
    if item == claimed.relation or item not in _MANY:
        return True
    return bool(_items(claims, claimed, item) & _items(statements, stated, item))


def _items(facts: tuple[Fact, ...], year: Fact, item: str) -> set[str]:
    """The work, prize, post, ... whose year a fact gives: the one it names, or those told in the same breath."""
    if year.about:
        return {year.about}
    return {fact.value for fact in facts if fact.subject == year.subject and fact.relation == item}
