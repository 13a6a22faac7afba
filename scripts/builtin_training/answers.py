"""True answers to prompts, sentence by sentence, as a well-read writer would give them.

Truth is whatever the given person's values say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from ewe.evaluation.world.people import TOPIC_OF_SLOT, Person, relation_of
from ewe.evaluation.world.wording import Phrasing, Reference, Wording, catalogue, phrasings
from ewe.evaluation.world.world import WorldPrompt
from ewe.evaluation.world.world_grammar import LEAD_INS

_MIDDLE = ("institute", "work", "invention", "prize", "expedition", "work2", "prize2")
_SINGLE_LIST_SENTENCE = 0.5
_LEAD_IN_RATE = 0.3
_YEAR_FIRST_RATE = 0.5


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of an answer and the person it speaks of; `lead_in` code points stand before the wording."""

    person: Person
    wording: Wording
    lead_in: str = ""

    @property
    def text(self) -> str:
        """The sentence."""
        return self.lead_in + self.wording.text


def compose_answer(
    rng: Random, prompt: WorldPrompt, people: Mapping[str, Person], pronoun_rate: float
) -> list[Statement]:
    """The sentences of a true answer; people maps names to the prompt's subjects.

    pronoun_rate: share of the sentences after the first that refer to the person by a pronoun; of the others some
    use the surname alone.
    """
    person = people[prompt.subjects[0]]
    if prompt.kind == "life":
        return _life(rng, person, pronoun_rate)
    if prompt.kind == "question":
        return [Statement(person, _answer_slot(rng, person, prompt.slots[0]))]
    if prompt.kind == "list":
        return _list(rng, person, TOPIC_OF_SLOT[prompt.slots[0]], pronoun_rate)
    topic = TOPIC_OF_SLOT[prompt.slots[0]]
    first, second = (people[name] for name in prompt.subjects)
    chosen = rng.choice(phrasings(topic, "answer"))
    wording = _pick(rng, topic).fill(second) if rng.random() < 0.5 else chosen.fill(second)
    named_first = chosen.text.startswith("{S}") and wording.text.startswith(second.name)
    lead_in = rng.choice(LEAD_INS) if named_first and rng.random() < _LEAD_IN_RATE else ""
    return [Statement(first, chosen.fill(first)), Statement(second, wording, lead_in)]


def _life(rng: Random, person: Person, pronoun_rate: float) -> list[Statement]:
    """5 to 9 sentences: birth or profession first, then the rest in the usual order or with the middle shuffled."""
    middle = [topic for topic in _MIDDLE if rng.random() < 0.65]
    if rng.random() < 0.5:
        rng.shuffle(middle)
    start = ["birth"] if rng.random() < 0.4 else ["birth", "occupation"] if rng.random() < 0.7 else ["occupation"]
    school = ["school"] if rng.random() < 0.7 else ["teacher"] if rng.random() < 0.5 else []
    end = [topic for topic in ("residence", "death") if rng.random() < 0.6]
    topics = (start + school + middle + end)[:9]
    spare = [topic for topic in _MIDDLE if topic not in topics]
    rng.shuffle(spare)
    while len(topics) < 5:
        topics.append(spare.pop())
    return _say(rng, person, topics, pronoun_rate)


def _list(rng: Random, person: Person, topic: str, pronoun_rate: float) -> list[Statement]:
    if rng.random() < _SINGLE_LIST_SENTENCE:
        return [Statement(person, rng.choice(_list_phrasings(topic)).fill(person))]
    topics = [topic, topic + "2"]
    rng.shuffle(topics)
    return _say(rng, person, topics, pronoun_rate)


def _say(rng: Random, person: Person, topics: list[str], pronoun_rate: float) -> list[Statement]:
    """One sentence per topic; a topic whose facts an earlier sentence has told already is passed over."""
    statements: list[Statement] = []
    told: set[str] = set()
    for topic in topics:
        reference = _reference(rng, pronoun_rate) if statements else "full"
        wording = _pick(rng, topic, reference).fill(person, reference, other_item=topic.endswith("2"))
        if not told.issuperset(wording.slots):
            statements.append(Statement(person, wording))
            told.update(wording.slots)
    return statements


def _reference(rng: Random, pronoun_rate: float) -> Reference:
    if rng.random() < pronoun_rate:
        return "pronoun"
    return "surname" if rng.random() < 0.3 else "full"


def retell(rng: Random, statement: Statement, pronoun_rate: float, named: bool) -> Statement:
    """Another sentence on a topic of `statement` about the same person; `named`: with the full name.

    Works and prizes often with the year first: which of two a year belongs to is the hardest thing to find in memory.
    """
    topic = TOPIC_OF_SLOT[rng.choice(statement.wording.slots)]
    reference = "full" if named else _reference(rng, pronoun_rate)
    chosen = _pick(rng, topic, reference)
    if relation_of(topic) in ("work", "prize") and rng.random() < _YEAR_FIRST_RATE:
        chosen = rng.choice([item for item in phrasings(topic, "answer") if item.text.startswith("In {")])
    wording = chosen.fill(statement.person, reference, other_item=topic.endswith("2"))
    return Statement(statement.person, wording)


def _answer_slot(rng: Random, person: Person, slot: str) -> Wording:
    """A sentence with the person's name that states `slot` (and perhaps more)."""
    topic = "teacher" if slot == "teacher" and rng.random() < 0.5 else TOPIC_OF_SLOT[slot]
    fitting = [phrasing for phrasing in phrasings(topic, "answer") if slot in phrasing.slots]
    return rng.choice(fitting).fill(person)


def _pick(rng: Random, topic: str, reference: Reference = "full") -> Phrasing:
    return rng.choice(phrasings(topic, "answer", named=reference != "pronoun"))


def _list_phrasings(topic: str) -> list[Phrasing]:
    """The phrasings that name both of a person's works or prizes in one sentence."""
    return [one for one in catalogue() if one.topic == topic and any("2" in slot for slot in one.slots)]
