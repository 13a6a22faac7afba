"""What a stage of the training reads: labelled pairs, and pairs made from them, anew in every epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

from judge_training.contrasts import negated_from, refuted_from, settled_no_more, supported_from
from judge_training.made import made_pairs
from judge_training.neighbours import irrelevant_pairs
from judge_training.pairs import Label, Pair, sentences_of
from judge_training.sources import (
    Fever,
    read_bios,
    read_conflictqa,
    read_fever,
    read_fool_me_twice,
    read_paragraphs,
    read_wice,
)
from judge_training.swaps import find_values
from judge_training.world_pairs import world_pairs

_TITLED = 0.5  # Share of pairs whose evidence is led by its title, where there is one.


@dataclass(frozen=True)
class Corpus:
    """Everything that is read from `data`, once. texts: running text for made pairs; names: to swap names for."""

    fever: Fever
    fool_me_twice: Sequence[tuple[int, Pair, tuple[str, ...]]]
    conflicts: Sequence[Pair]
    bios: Sequence[Pair]
    wice: Sequence[Pair]
    texts: Sequence[tuple[str, list[str]]]
    names: Sequence[str]

    @classmethod
    def read(cls, data: Path) -> Corpus:
        """Reads the sets under `data`; raises FileNotFoundError for one that is missing."""
        fever = read_fever(data)
        texts = [("", sentences_of(pair.evidence)) for pair in fever.train]
        texts += read_paragraphs(data)
        names = [
            value.text
            for _, sentences in texts
            for sentence in sentences
            for value in find_values(sentence)
            if value.kind == "name" and value.start > 0 and len(value.text) > 3
        ]
        return cls(
            fever, read_fool_me_twice(data), read_conflictqa(data), read_bios(data), read_wice(data), texts, names
        )


def first_stage(corpus: Corpus, epoch: int, scale: float = 1.0) -> list[Pair]:
    """One epoch without Fool-Me-Twice in random order, about 20,500 pairs at scale 1, later 15,000: from the second on,
    half as many that are not FEVER's. The epoch alone decides it.
    """
    rng = Random(f"first/{epoch}")
    part = 1.0 if epoch == 0 else 0.5
    fever = corpus.fever.train
    pairs = [*fever, *contrasts_of(rng, corpus.names, fever, 0.5)]
    apart = irrelevant_pairs(rng, fever, first=False)
    pairs += rng.sample(apart, 2200 if epoch == 0 else 1600)
    beside = {pair.claim: pair.evidence for pair in apart}
    pairs += [_among(rng, pair, [beside[pair.claim]]) for pair in fever if pair.claim in beside and rng.random() < 0.3]
    pairs += islice(made_pairs(rng, corpus.texts, corpus.names), round(4500 * part))
    pairs += rng.sample(list(corpus.conflicts), round(1400 * part))
    bios = rng.sample(list(corpus.bios), round(1700 * part))
    pairs += [*bios, *every(bios, lambda pair: changed_pair(rng, pair, corpus.names), rng, 0.5)]
    wice = rng.sample(list(corpus.wice), round(len(corpus.wice) * part))
    pairs += [*wice, *every(wice, lambda pair: changed_pair(rng, pair, corpus.names), rng, 0.5)]
    pairs += islice(world_pairs(rng), round(1500 * part))
    return _finish(rng, pairs, scale)


def second_stage(corpus: Corpus, epoch: str, left_out: int, scale: float = 1.0) -> list[Pair]:
    """One epoch on Fool-Me-Twice without the fold `left_out`, with a reminder of the rest: about 4,200 pairs."""
    rng = Random(f"second/{left_out}/{epoch}")
    seen = [(pair, others) for fold, pair, others in corpus.fool_me_twice if fold != left_out]
    claims = [pair for pair, _ in seen]
    pairs = [*claims, *contrasts_of(rng, corpus.names, claims, 0.5)]
    pairs += [_beside(rng, pair, others) for pair, others in seen if others and rng.random() < 0.7]
    pairs += [_among(rng, pair, others) for pair, others in seen if others and rng.random() < 0.5]
    fever = rng.sample(list(corpus.fever.train), 700)
    pairs += [*fever, *contrasts_of(rng, corpus.names, fever, 0.4)]
    pairs += rng.sample(irrelevant_pairs(rng, fever, first=False), 250)
    pairs += rng.sample(list(corpus.conflicts), 120)
    pairs += rng.sample(list(corpus.bios), 120)
    pairs += rng.sample(list(corpus.wice), 60)
    pairs += islice(world_pairs(rng), 500)
    return _finish(rng, pairs, scale)


def contrasts_of(rng: Random, names: Sequence[str], pairs: Sequence[Pair], rate: float) -> list[Pair]:
    """Contrasts of a share of the pairs: changed values, negation, another subject. names: to swap names for."""
    made = every(pairs, lambda pair: changed_pair(rng, pair, names), rng, rate)
    made += every(pairs, negated_from, rng, rate * 0.2)
    made += every(pairs, lambda pair: settled_no_more(rng, pair, names), rng, rate * 0.3)
    return made


def changed_pair(rng: Random, pair: Pair, names: Sequence[str]) -> Pair | None:
    """A supported pair made refuted, or the other way round, by a changed value; None where that is not clear."""
    if pair.label is Label.SUPPORTED:
        return refuted_from(rng, pair, names)
    return supported_from(rng, pair) if pair.label is Label.REFUTED else None


def every(pairs: Iterable[Pair], change: Callable[[Pair], Pair | None], rng: Random, rate: float) -> list[Pair]:
    """What `change` makes of a share of the pairs, without those of which it makes nothing."""
    return [changed for pair in pairs if rng.random() < rate and (changed := change(pair)) is not None]


def _beside(rng: Random, pair: Pair, others: Sequence[str]) -> Pair:
    """The claim beside one to three sentences of the same page that are not its evidence."""
    return replace(pair, evidence=" ".join(_some(rng, others)), label=Label.INCONCLUSIVE)


def _among(rng: Random, pair: Pair, others: Sequence[str]) -> Pair:
    """The pair with one to three of the other texts around its evidence, as a passage has them."""
    chosen = _some(rng, others)
    chosen.insert(rng.randint(0, len(chosen)), pair.evidence)
    return replace(pair, evidence=" ".join(chosen))


def _some(rng: Random, texts: Sequence[str]) -> list[str]:
    return rng.sample(list(texts), min(len(texts), rng.randint(1, 3)))


def _finish(rng: Random, pairs: list[Pair], scale: float) -> list[Pair]:
    """In random order, a share of them, and with titles before some of the evidence."""
    rng.shuffle(pairs)
    return [
        pair.under_title() if pair.title and rng.random() < _TITLED else pair
        for pair in pairs[: max(1, round(len(pairs) * scale))]
    ]
