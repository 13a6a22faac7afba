"""Prompts of four kinds: a life, one question, a list, a comparison."""

from dataclasses import dataclass
from random import Random
from typing import Literal

from ewe.world.people import SLOTS_BY_TOPIC, Fact, Person
from ewe.world.phrasings import COMPARISON_PROMPTS, LIFE_PROMPTS, LIST_PROMPTS, QUESTIONS

PromptKind = Literal["life", "question", "list", "comparison"]
KINDS: tuple[PromptKind, ...] = ("life", "question", "list", "comparison")


@dataclass(frozen=True, slots=True)
class WorldPrompt:
    """A prompt, whom it is about, the slots it asks for and the facts that would answer it."""

    text: str
    kind: PromptKind
    subjects: tuple[str, ...]
    slots: tuple[str, ...]
    facts: tuple[Fact, ...]


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
