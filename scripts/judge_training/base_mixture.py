"""What the base judge is trained on: shards of labelled pairs and of pairs made from running text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from judge_training.mixture import changed_pair, contrasts_of, every
from judge_training.neighbours import irrelevant_pairs
from judge_training.pairs import Label, Pair, key_of, sentences_of
from judge_training.passages import Passages, Text, fool_me_twice_in_training, wice_in_training
from judge_training.running import draw_scene, running_pairs
from judge_training.sources import Fever, read_bios, read_conflictqa, read_fever, read_fool_me_twice, read_wice
from judge_training.world_pairs import world_pairs

SHARD = 8000
"""Pairs in a shard, about."""

_TITLED = 0.5  # Share of pairs whose evidence is led by its title, where there is one.
_RUNNING = 4600
_FEVER = 640
_FOOL_ME_TWICE = 100
_WICE = 70
_CONFLICTS = 160
_BIOS = 360
_WORLD = 300


@dataclass(frozen=True)
class BaseCorpus:
    """Everything that is read, once. apart: claims beside what BM25 finds for them on other pages."""

    fever: Fever
    apart: Sequence[Pair]
    fool_me_twice: Sequence[tuple[Pair, tuple[str, ...]]]
    conflicts: Sequence[Pair]
    bios: Sequence[Pair]
    wice: Sequence[Pair]
    passages: Passages
    homes: dict[str, tuple[Text, int]]

    @classmethod
    def read(cls, data: Path) -> BaseCorpus:
        """Reads the sets under `data`; raises FileNotFoundError for one that is missing."""
        fever = read_fever(data)
        rng = Random("apart")
        passages = Passages.read(data, fever)
        return cls(
            fever,
            [*irrelevant_pairs(rng, fever.train, first=False), *irrelevant_pairs(rng, fever.train, first=False)],
            [(pair, others) for fold, pair, others in read_fool_me_twice(data) if fool_me_twice_in_training(fold)],
            read_conflictqa(data),
            read_bios(data),
            [pair for pair in read_wice(data) if wice_in_training(pair.group)],
            passages,
            passages.homes(),
        )

    def in_context(self, rng: Random, pair: Pair) -> Pair:
        """The pair with its evidence among other sentences: those of its own text where that is known."""
        sentences = sentences_of(pair.evidence)
        home = self.homes.get(key_of(sentences[0])) if sentences else None
        text, place = home if home is not None and len(sentences) == 1 else (("", [pair.evidence]), 0)
        scene = draw_scene(rng, self.passages, text, place)
        made = scene.pair(pair.evidence, pair.claim, pair.label)
        return Pair(made.evidence, made.claim, made.label, pair.title or text[0], pair.group)


def shard(corpus: BaseCorpus, seed: int, number: int, scale: float = 1.0) -> list[Pair]:
    """Shard `number` in random order, about SHARD pairs at scale 1; seed and number alone decide it."""
    rng = Random(f"base/{seed}/{number}")
    names = corpus.passages.names
    fever = _drawn(rng, corpus.fever.train, _FEVER, scale)
    pairs = [*fever, *contrasts_of(rng, names, fever, 0.6)]
    pairs += [corpus.in_context(rng, pair) for pair in _labelled(rng, corpus, fever, 0.7)]
    apart = _drawn(rng, corpus.apart, _FEVER // 2, scale)
    pairs += [pair if rng.random() < 0.5 else corpus.in_context(rng, pair) for pair in apart]
    pairs += _fool_me_twice(rng, corpus, scale)
    wice = _drawn(rng, corpus.wice, _WICE, scale)
    pairs += [*wice, *every(wice, lambda pair: changed_pair(rng, pair, names), rng, 0.5)]
    pairs += [corpus.in_context(rng, pair) for pair in _labelled(rng, corpus, wice, 1.0)]
    pairs += _drawn(rng, corpus.conflicts, _CONFLICTS, scale)
    bios = _drawn(rng, corpus.bios, _BIOS, scale)
    pairs += [corpus.in_context(rng, pair) for pair in _labelled(rng, corpus, bios, 1.0)]
    pairs += islice(world_pairs(rng), round(_WORLD * scale))
    pairs += islice(running_pairs(rng, corpus.passages), round(_RUNNING * scale))
    rng.shuffle(pairs)
    return [pair.under_title() if pair.title and rng.random() < _TITLED else pair for pair in pairs]


def _fool_me_twice(rng: Random, corpus: BaseCorpus, scale: float) -> list[Pair]:
    """Claims with their evidence alone and among sentences of their page, contrasts, and claims without evidence."""
    chosen = _drawn(rng, corpus.fool_me_twice, _FOOL_ME_TWICE, scale)
    claims = [pair for pair, _ in chosen]
    pairs = [*claims, *contrasts_of(rng, corpus.passages.names, claims, 0.6)]
    for pair, others in chosen:
        some = rng.sample(others, min(len(others), rng.randint(1, 5)))
        if some:
            pairs.append(Pair(" ".join(some), pair.claim, Label.INCONCLUSIVE, pair.title, pair.group))
            some.insert(rng.randint(0, len(some)), pair.evidence)
            pairs.append(Pair(" ".join(some), pair.claim, pair.label, pair.title, pair.group))
    return pairs


def _labelled(rng: Random, corpus: BaseCorpus, pairs: Sequence[Pair], rate: float) -> list[Pair]:
    """A share of the pairs, as they are or changed."""
    chosen = [pair for pair in pairs if rng.random() < rate]
    changed = every(chosen, lambda pair: changed_pair(rng, pair, corpus.passages.names), rng, 0.5)
    return [*chosen, *changed]


def _drawn(rng: Random, items: Sequence, count: int, scale: float) -> list:
    return rng.sample(list(items), min(len(items), max(1, round(count * scale))))
