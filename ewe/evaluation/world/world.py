"""The world: people, what is true of them, and the passages that tell of it, truly or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Literal, Self

from ewe.errors import ConfigError
from ewe.evaluation.world import names
from ewe.evaluation.world.articles import FORUM, GAZETTE, PAGES, SOURCES, STORIES, Source, Telling, tell
from ewe.evaluation.world.people import (
    FIRST_BIRTH_YEAR,
    LAST_BIRTH_YEAR,
    SLOTS_BY_TOPIC,
    EntityPool,
    Fact,
    Person,
    fill_person,
    lie_about,
)
from ewe.evaluation.world.phrasings import COMPARISON_PROMPTS, LIFE_PROMPTS, LIST_PROMPTS, QUESTIONS
from ewe.types import Passage

FIRST_TRAINING_SEED = 1_000_000
"""Worlds with seeds from here on have people for training; those below, people for tests and evaluation."""

PromptKind = Literal["life", "question", "list", "comparison"]
KINDS: tuple[PromptKind, ...] = ("life", "question", "list", "comparison")
_FORUM_SHARE_OF_LIES = 0.9


@dataclass(frozen=True, slots=True)
class WorldPrompt:
    """A prompt, whom it is about, the slots it asks for and the facts that would answer it."""

    text: str
    kind: PromptKind
    subjects: tuple[str, ...]
    slots: tuple[str, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class World:
    """A fictional encyclopedia.

    people: by full name. passages: in no particular order. stated: per passage id, the facts it states, false ones
    included. poisoned_ids: the passages that state something false.
    """

    seed: int
    people: Mapping[str, Person] = field(hash=False)
    passages: tuple[Passage, ...] = field(hash=False)
    stated: Mapping[str, tuple[Fact, ...]] = field(hash=False)
    poisoned_ids: frozenset[str]

    @classmethod
    def generate(cls, seed: int, num_people: int, poisoned: float = 0.0) -> Self:
        """The world of a seed; `poisoned` is the share of all passages that state something false.

        The people and the wording of the other passages do not depend on `poisoned`. Raises ConfigError for fewer
        than 2 people or a share that is negative or greater than the less reliable sources' part.
        """
        if num_people < 2:
            raise ConfigError(f"a world needs at least 2 people, got {num_people}")
        rng = Random(f"{seed}/people")
        pool = EntityPool.draw(rng, "train" if seed >= FIRST_TRAINING_SEED else "test", max(6, num_people // 3))
        people = _draw_people(rng, pool, num_people)
        sharing = _who_shares_what(people)
        stories = [story for person in people.values() for story in _stories_about(seed, person, sharing, pool)]
        Random(f"{seed}/order").shuffle(stories)
        lies = _choose_lies(Random(f"{seed}/poison"), stories, poisoned)
        passages, stated = [], {}
        for index, story in enumerate(stories):
            telling = story.tell(is_lie=index in lies)
            passages.append(telling.passage(f"w{seed}-{index:05d}"))
            stated[passages[-1].id] = telling.facts
        return cls(seed, people, tuple(passages), stated, frozenset(passages[index].id for index in lies))

    @cached_property
    def facts(self) -> frozenset[Fact]:
        """Everything that is true of the people."""
        return frozenset(fact for person in self.people.values() for fact in person.facts)

    def prompts(self, kinds: Sequence[PromptKind] = KINDS, limit: int | None = None) -> list[WorldPrompt]:
        """One prompt of each kind per person, for the first `limit` people; always the same ones for a world."""
        everyone = list(self.people.values())
        prompts = []
        for index, person in enumerate(everyone[:limit]):
            following = everyone[index + 1 :] + everyone[:index]
            other = next((one for one in following if one.surname != person.surname), following[0])
            for kind in kinds:
                prompts.append(draw_prompt(Random(f"{self.seed}/{person.name}/{kind}"), kind, person, other))
        return prompts


@dataclass(frozen=True, slots=True)
class _Story:
    """What one source has to tell of one topic of one person; the same seed gives truth and lie the same wording."""

    seed: str
    person: Person
    topic: str
    source: Source
    pool: EntityPool
    other: Person | None

    def tell(self, is_lie: bool) -> Telling:
        person = self.person
        if is_lie:
            person = lie_about(Random(self.seed + "/lie"), person, SLOTS_BY_TOPIC[self.topic], self.pool)
        return tell(Random(self.seed), person, self.topic, self.source, self.pool, self.other)


def _draw_people(rng: Random, pool: EntityPool, count: int) -> dict[str, Person]:
    """People with names of their own; one in ten shares a surname with somebody else."""
    births: dict[str, int] = {}
    while len(births) < count:
        shared = rng.choice(list(births)).rsplit(" ", 1)[1] if births and rng.random() < 0.1 else None
        name = names.person_name(rng, pool.split, shared)
        if name not in births and name not in pool.elders:
            births[name] = rng.randint(FIRST_BIRTH_YEAR, LAST_BIRTH_YEAR)
    return {name: fill_person(rng, pool, name, birth, births) for name, birth in births.items()}


def _who_shares_what(people: Mapping[str, Person]) -> Mapping[tuple[str, str], list[Person]]:
    """(slot of a page's title, title) -> the people whom that page tells of."""
    slots = {pages[0][0] for pages in PAGES.values()} - {"name"}
    sharing: dict[tuple[str, str], list[Person]] = {}
    for person in people.values():
        for slot in slots:
            sharing.setdefault((slot, person.values[slot]), []).append(person)
    return sharing


def _stories_about(
    seed: int, person: Person, sharing: Mapping[tuple[str, str], list[Person]], pool: EntityPool
) -> Iterator[_Story]:
    for topic in STORIES:
        slot = PAGES[topic][0][0]
        others = [] if slot == "name" else sharing[slot, person.values[slot]]
        others = [other for other in others if other.name != person.name]
        for source in SOURCES:
            key = f"{seed}/{person.name}/{topic}/{source.name}"
            rng = Random(key + "/draw")
            if rng.random() < source.share:
                yield _Story(key, person, topic, source, pool, rng.choice(others) if others else None)


def _choose_lies(rng: Random, stories: Sequence[_Story], poisoned: float) -> frozenset[int]:
    """Indices of the stories to tell falsely: mostly the forum's, the rest the gazette's, never the atlas's."""
    count = round(poisoned * len(stories))
    forum = [index for index, story in enumerate(stories) if story.source is FORUM]
    gazette = [index for index, story in enumerate(stories) if story.source is GAZETTE]
    if not 0 <= count <= len(forum) + len(gazette):
        most = (len(forum) + len(gazette)) / len(stories)
        raise ConfigError(f"poisoned must lie between 0 and {most:.2f}, the unreliable sources' share; got {poisoned}")
    from_forum = min(len(forum), max(round(count * _FORUM_SHARE_OF_LIES), count - len(gazette)))
    return frozenset(rng.sample(forum, from_forum) + rng.sample(gazette, count - from_forum))


def draw_prompt(rng: Random, kind: PromptKind, person: Person, other: Person) -> WorldPrompt:
    """A prompt of the given kind about `person`; only a comparison is also about `other`."""
    if kind == "life":
        return WorldPrompt(_fill(rng, LIFE_PROMPTS, person), kind, (person.name,), tuple(person.values), person.facts)
    if kind == "question":
        return ask(rng, person, rng.choice(tuple(QUESTIONS)))
    if kind == "list":
        topic = rng.choice(tuple(LIST_PROMPTS))
        slots = SLOTS_BY_TOPIC[topic] + SLOTS_BY_TOPIC[topic + "2"]
        facts = tuple(person.fact(slot) for slot in slots)
        return WorldPrompt(_fill(rng, LIST_PROMPTS[topic], person), kind, (person.name,), slots, facts)
    topic = rng.choice(tuple(COMPARISON_PROMPTS))
    text = rng.choice(COMPARISON_PROMPTS[topic]).format(S=person.name, T=other.name)
    slots = SLOTS_BY_TOPIC[topic]
    facts = tuple(one.fact(slot) for one in (person, other) for slot in slots)
    return WorldPrompt(text, kind, (person.name, other.name), slots, facts)


def ask(rng: Random, person: Person, slot: str) -> WorldPrompt:
    """A question for one slot of `person`; `QUESTIONS` holds the slots that can be asked for."""
    return WorldPrompt(_fill(rng, QUESTIONS[slot], person), "question", (person.name,), (slot,), (person.fact(slot),))


def _fill(rng: Random, texts: tuple[str, ...], person: Person) -> str:
    return rng.choice(texts).format(S=person.name, **person.values)
