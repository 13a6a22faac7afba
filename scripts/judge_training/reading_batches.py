"""Batches of packs for judges that read passages together, for training and for looking at articles kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random

from torch.utils.data import IterableDataset, get_worker_info

from judge_training.claim_corpus import Claim, Corpus, Pack, is_held_out
from judge_training.claim_packs import MAX_CHARACTERS, claims_of, epoch, packs
from judge_training.packed_model import Ids
from judge_training.retrieved import RetrievedEvidence

Batch = list[tuple[Ids, list[int]]]
"""Packs: token ids, and the labels of the claims."""


class Batches(IterableDataset[Batch]):
    """Batches without end, epoch after epoch, from the `start`th on; each worker makes its share of them."""

    def __init__(
        self,
        corpus: Corpus,
        encode: Callable[[Pack], Ids],
        seed: int,
        batch_claims: int,
        start: int,
        retrieved: float,
    ) -> None:
        self._corpus, self._encode, self._retrieved = corpus, encode, retrieved
        self._seed, self._batch_claims, self._start = seed, batch_claims, start
        texts = [text for text in corpus.texts.values() if not is_held_out(text.title)]
        self._found = RetrievedEvidence(texts, MAX_CHARACTERS)

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for at, (seed, batch) in enumerate(self._drawn()):
            if at >= self._start and at % workers == number and (encoded := self._encoded(f"{seed}/{at}", batch)):
                yield encoded

    def _drawn(self) -> Iterator[tuple[int, list[Pack | Claim]]]:
        for number in count():
            seed = 1000 * self._seed + number
            batch: list[Pack | Claim] = []
            for one in epoch(self._corpus, seed, self._retrieved):
                batch.append(one)
                if sum(len(item.claims) if isinstance(item, Pack) else 1 for item in batch) >= self._batch_claims:
                    yield seed, batch
                    batch = []

    def _encoded(self, seed: str, batch: Sequence[Pack | Claim]) -> Batch:
        rng = Random(f"retrieved/{seed}")
        made = (one if isinstance(one, Pack) else self._found.pack(rng, one) for one in batch)
        return [(self._encode(pack), [int(claim.label) for claim in pack.claims]) for pack in made if pack]


def length_of(ids: Ids) -> int:
    """Tokens of a pack."""
    shared, own = ids
    return len(shared) + sum(map(len, own))


def split(batch: Batch, most_tokens: int) -> Iterator[Batch]:
    """The packs of a batch, shortest first, so many padded tokens at a time; a pack is never cut."""
    part: Batch = []
    for one in batch:
        if part and length_of(one[0]) * (len(part) + 1) > most_tokens:
            yield part
            part = []
        part.append(one)
    if part:
        yield part


class HeldOut:
    """Claims about the articles kept apart: beside their own passages, and beside what is found among all."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._found = RetrievedEvidence(list(corpus.texts.values()), MAX_CHARACTERS)

    def packs(self, limit: int) -> tuple[list[Pack], list[Pack]]:
        """So many packs with their own passages, and at most three times as many claims beside what is found."""
        known = claims_of(self._corpus, held_out=True)
        rng = Random("held out")
        claims = rng.sample(known, min(3 * limit, len(known)))
        found = (self._found.pack(rng, claim) for claim in claims)
        return packs(self._corpus, 0, held_out=True)[:limit], [pack for pack in found if pack]
