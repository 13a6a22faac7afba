"""Pairs from running text: a sentence, as it is or edited, beside the window it stands in, as that is or edited.

An edit of the claim alone makes it false; the same edit of both leaves it true. So neither an odd word in the claim
nor a likely one tells the label: only the comparison does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from judge_training.edits import CUTS, REWORDINGS, falsified, predicate_values, surely_a_name, wrong_relation
from judge_training.made import shorten
from judge_training.pairs import Label, Pair
from judge_training.passages import Passages, Text, window
from judge_training.swaps import find_values, other_value, replace_value

_PRONOUN = re.compile(r"^(He|She|It|They|His|Her|Its|Their) ")
_POSSESSIVE = ("His", "Her", "Its", "Their")
_MARK = "\0"  # Stands for the claim's own sentence in a window.
_ALONE = 0.12  # Share of pairs whose evidence is one sentence.
_WIDEST = 950  # Characters of the longest window.
_STRANGERS = 0.25  # Share of windows with sentences of another text among theirs.


@dataclass(frozen=True, slots=True)
class Scene:
    """A sentence of a text, and the window around it with a mark in the sentence's place."""

    title: str
    sentence: str
    around: list[str]

    def pair(self, evidence: str | None, claim: str, label: Label) -> Pair:
        """The pair with `evidence` in the sentence's place; None leaves the place empty."""
        told = [text if text != _MARK else evidence for text in self.around]
        return Pair(" ".join(text for text in told if text), claim, label, self.title)

    @property
    def others(self) -> list[str]:
        """The window's other sentences."""
        return [text for text in self.around if text != _MARK]


def draw_scene(rng: Random, passages: Passages, text: Text, place: int) -> Scene:
    """The sentence at `place` of a text among its neighbours, strangers mixed in now and then."""
    title, sentences = text
    if rng.random() < _ALONE:
        return Scene(title, sentences[place], [_MARK])
    characters = rng.randint(200, _WIDEST)
    marked = [*sentences[:place], _MARK, *sentences[place + 1 :]]
    around = window(rng, marked, place, characters - len(sentences[place]))
    missing = characters - sum(map(len, around)) - len(sentences[place])
    if missing > 250 or rng.random() < _STRANGERS:
        strangers = _strangers(rng, passages, max(missing, 200))
        around = _mixed(rng, around, [told for told in strangers if told not in sentences])
    return Scene(title, sentences[place], around)


def running_pairs(rng: Random, passages: Passages) -> Iterator[Pair]:
    """Endless pairs: about two fifths supported, two fifths refuted, a fifth inconclusive."""
    ways = list(_WAYS)
    weights = [_WAYS[way] for way in ways]
    while True:
        text = passages.draw(rng)
        scene = draw_scene(rng, passages, text, rng.randrange(len(text[1])))
        [way] = rng.choices(ways, weights)
        made = way(rng, scene, passages.names)
        if made is not None and made.evidence:
            yield made


def _true(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """The sentence against its own window: as it is, its pronoun named, or shortened."""
    draw = rng.random()
    claim: str | None = scene.sentence
    if draw < 0.2:
        claim = shorten(rng, scene.sentence, scene.title)
    elif draw < 0.5:
        claim = _named(scene)
    return scene.pair(scene.sentence, claim, Label.SUPPORTED) if claim else None


def _reworded(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """Claim or evidence said otherwise, or the claim cut; evidence that was cut no longer says all of the claim."""
    if rng.random() < 0.35:
        changed = rng.choice(list(CUTS.values()))(rng, scene.sentence, scene.others, names)
        if changed is None:
            return None
        if rng.random() < 0.65:
            return scene.pair(scene.sentence, changed, Label.SUPPORTED)
        return scene.pair(changed, scene.sentence, Label.INCONCLUSIVE)
    changed = rng.choice(list(REWORDINGS.values()))(rng, scene.sentence, scene.others, names)
    if changed is None:
        return None
    evidence, claim = rng.sample((changed, scene.sentence), 2)
    return scene.pair(evidence, claim, Label.SUPPORTED)


def _false(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """Claim or evidence falsified; said in full or shortened, the pronoun named or not."""
    base = _named(scene) if rng.random() < 0.3 else scene.sentence
    if rng.random() < 0.2:
        base = shorten(rng, base, scene.title) or base
    changed = falsified(rng, base, scene.others, names)
    if changed is None:
        return None
    if base == scene.sentence and rng.random() < 0.35:
        return scene.pair(changed, base, Label.REFUTED)
    return scene.pair(scene.sentence, changed, Label.REFUTED)


def _both(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """The same edit on both sides, so that an edited claim is true as often as not."""
    changed = falsified(rng, scene.sentence, scene.others, names)
    if changed is None:
        return None
    if rng.random() < 0.3:
        again = falsified(rng, changed, scene.others, names)
        return scene.pair(changed, again, Label.REFUTED) if again and again != scene.sentence else None
    return scene.pair(changed, changed, Label.SUPPORTED)


def _absent(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """The window without the sentence says nothing of it, true or falsified."""
    claim = scene.sentence if rng.random() < 0.6 else falsified(rng, scene.sentence, scene.others, names)
    if claim is None or not scene.others:
        return None
    return scene.pair(None, claim, Label.INCONCLUSIVE)


def _another_relation(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """The same names in a relation of which the window says nothing."""
    changed = wrong_relation(rng, scene.sentence, scene.others, names)
    if changed is None:
        return None
    evidence, claim = rng.sample((changed, scene.sentence), 2)
    return scene.pair(evidence, claim, Label.INCONCLUSIVE)


def _decoy(rng: Random, scene: Scene, names: Sequence[str]) -> Pair | None:
    """A sentence like it about somebody else, with other values, stands in the window too, or alone."""
    values = find_values(scene.sentence)
    if not values or values[0].kind != "name" or values[0].start > 4 or not surely_a_name(values[0]):
        return None
    stranger = other_value(rng, values[0], " ".join((scene.sentence, *scene.others)), names)
    changed = falsified(rng, scene.sentence, (), names) if predicate_values(scene.sentence) else None
    if stranger is None or changed is None:
        return None
    decoy = replace_value(changed, values[0].text, stranger)
    both = " ".join(rng.sample((decoy, scene.sentence), 2))
    draw = rng.random()
    if draw < 0.3:
        return scene.pair(both, scene.sentence, Label.SUPPORTED)
    if draw < 0.6:
        return scene.pair(both, changed, Label.REFUTED)
    if draw < 0.75:
        return scene.pair(both, decoy, Label.SUPPORTED)
    return scene.pair(decoy, rng.choice((scene.sentence, changed)), Label.INCONCLUSIVE)


_Way = Callable[[Random, Scene, Sequence[str]], Pair | None]
_WAYS: dict[_Way, float] = {
    _true: 0.26,
    _reworded: 0.12,
    _false: 0.36,
    _both: 0.16,
    _absent: 0.15,
    _another_relation: 0.05,
    _decoy: 0.12,
}


def _named(scene: Scene) -> str:
    """The sentence with the title for a pronoun that begins it."""

    def name(match: re.Match[str]) -> str:
        return scene.title + ("'s " if match[1] in _POSSESSIVE else " ")

    return _PRONOUN.sub(name, scene.sentence) if scene.title else scene.sentence


def _strangers(rng: Random, passages: Passages, characters: int) -> list[str]:
    """Consecutive sentences of another text, of about so many characters."""
    _, sentences = passages.draw(rng)
    return window(rng, sentences, rng.randrange(len(sentences)), characters)[:8]


def _mixed(rng: Random, own: list[str], strangers: list[str]) -> list[str]:
    """Strangers before, after or among a window's own sentences."""
    draw = rng.random()
    if draw < 0.35:
        return [*strangers, *own]
    if draw < 0.7:
        return [*own, *strangers]
    place = rng.randint(0, len(own))
    return [*own[:place], *strangers, *own[place:]]
