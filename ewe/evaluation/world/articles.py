"""Passages: what the articles of the encyclopedia's sources say about people."""

from dataclasses import dataclass
from random import Random

from ewe.evaluation.world.people import SLOTS_BY_TOPIC, EntityPool, Fact, Person, second_item
from ewe.evaluation.world.phrasings import BACKGROUND
from ewe.evaluation.world.wording import Phrasing, Wording, phrasings
from ewe.types import Passage


@dataclass(frozen=True, slots=True)
class Source:
    """Who publishes a passage; veracity in [0, 1]; share is how many of all stories it tells."""

    name: str
    veracity: float
    share: float


ATLAS = Source("Harrow Atlas", 0.95, 1.0)
GAZETTE = Source("Northern Gazette", 0.8, 0.35)
FORUM = Source("Lantern Forum", 0.3, 0.85)
SOURCES = (ATLAS, GAZETTE, FORUM)

PAGES: dict[str, tuple[tuple[str, str], ...]] = {
    "birth": (("name", ""), ("birth_place", "town")),
    "occupation": (("name", ""),),
    "school": (("school", "school"),),
    "institute": (("institute", "institute"),),
    "work": (("work", "work"),),
    "work2": (("work2", "work"),),
    "invention": (("invention", "invention"),),
    "prize": (("prize", "prize"),),
    "prize2": (("prize2", "prize"),),
    "expedition": (("expedition", "expedition"),),
    "residence": (("residence", "town"),),
    "death": (("name", ""), ("residence", "town")),
}
"""Per topic, the pages that may tell of it: the slot that gives the page's title, and its kind for background."""

STORIES = tuple(topic for topic in PAGES if topic != "occupation")
"""The topics that get passages of their own in every source; the occupation is told along with the birth."""

_NEXT = {topic: STORIES[(index + 1) % len(STORIES)] for index, topic in enumerate(STORIES)} | {"occupation": "school"}


@dataclass(frozen=True, slots=True)
class Telling:
    """A passage with what it states: `sentences` without facts are background."""

    title: str
    source: Source
    sentences: tuple[Wording, ...]

    @property
    def text(self) -> str:
        """The passage's text."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts stated, in order, repetitions included."""
        return tuple(fact for sentence in self.sentences for fact in sentence.facts)

    def passage(self, passage_id: str) -> Passage:
        """The passage for a datastore."""
        return Passage(passage_id, self.text, self.title, self.source.name, veracity=self.source.veracity)


def tell(rng: Random, person: Person, topic: str, source: Source, pool: EntityPool, other: Person | None) -> Telling:
    """A passage of 1 to 3 sentences that states all facts of `topic` about `person`, and often one more.

    Added is the person's next topic, the same topic of `other`, or background on the page's subject.
    """
    title_slot, kind = rng.choice(PAGES[topic])
    title = person.name if title_slot == "name" else person.values[title_slot]
    second = topic.endswith("2")
    sentences = [_pick(rng, topic).fill(person, other_item=second)]
    if topic == "birth" and "occupation" not in sentences[0].slots:
        sentences.append(_pick(rng, "occupation").fill(person))
    _complete(rng, person, topic, sentences)
    draw = rng.random()
    if draw < 0.5:
        following = _NEXT[topic]
        sentences.append(_pick(rng, following).fill(person, other_item=following.endswith("2")))
    elif draw < 0.7 and other is not None and len(sentences) < 3:
        sentences.append(_pick(rng, topic).fill(other, other_item=second))
    elif kind:
        text = rng.choice(BACKGROUND[kind]).format(title=title, seat=pool.seat(title))
        sentences.insert(0, Wording(text[:1].upper() + text[1:], (), ()))
    return Telling(title, source, tuple(sentences[:3]))


def _complete(rng: Random, person: Person, topic: str, sentences: list[Wording]) -> None:
    """Adds a sentence if those so far leave out a slot of the topic."""
    stated = {slot for sentence in sentences for slot in sentence.slots}
    missing = set(SLOTS_BY_TOPIC[topic]) - stated
    if not missing:
        return
    second = topic.endswith("2")
    candidates = [p for p in _covering(topic) if missing <= {second_item(slot) if second else slot for slot in p.slots}]
    sentences.append(rng.choice(candidates).fill(person, other_item=second))


def _covering(topic: str) -> tuple[Phrasing, ...]:
    """Phrasings that may complete a topic: its own, and for the school those that name the teacher alone."""
    extra = phrasings("teacher", "passage") if topic == "school" else ()
    return phrasings(topic, "passage") + extra


def _pick(rng: Random, topic: str) -> Phrasing:
    return rng.choice(phrasings(topic, "passage"))
