"""Copying a datastore into a store outside this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from ewe.retrieval.bm25 import Postings, postings_of
from ewe.retrieval.dense import vectors_of
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import PassageSource, Progress, snapshot
from ewe.retrieval.vector_stores.stored_retrievers import check_encoder, metadata_of
from ewe.retrieval.vector_stores.vector_store import VectorStore, document
from ewe.retrieval.vectors import Vectors, encoder_note
from ewe.types import Passage

_BATCH = 500


@dataclass(frozen=True, slots=True)
class PushReport:
    """pushed: passages that are new or changed. existing: those that were there already. stored: all that are there."""

    pushed: int
    existing: int
    stored: int


def push(
    source: PassageSource, store: VectorStore, encoder: Encoder | None, progress: Progress | None = None
) -> PushReport:
    """Copies all passages of `source`, with the vectors that `encoder` makes of them (None: without).

    A passage replaces the one with its id, and is left alone if it is there as it is: an interrupted push goes on, and
    a second one changes nothing. A store that does not compute BM25 is given the weights of all words; they depend on
    all passages, so that any change of the source writes every passage again. Passages that the source no longer has
    stay. Indexes and vectors in the datastore's folder are used, missing ones are made there. Raises DatastoreError,
    also for a store that holds another encoder's vectors.
    """
    if store.metadata() is None:
        note = None if encoder is None else encoder_note(encoder)
        store.create({"layout": store.layout, "encoder": note}, None if encoder is None else encoder.dimension)
    check_encoder(store, metadata_of(store), encoder)
    vectors = None if encoder is None else vectors_of(source, encoder)
    done = pushed = 0
    with snapshot(source):
        postings = None if store.computes_bm25 else postings_of(source)
        rows, total = source.scan(), len(source)
        while batch := list(islice(rows, _BATCH)):
            pushed += _push(batch, done, store, vectors, postings)
            done += len(batch)
            if progress is not None:
                progress(done, total)
    store.flush()
    return PushReport(pushed, done - pushed, len(store))


def _push(
    batch: Sequence[tuple[int, Passage]],
    first: int,
    store: VectorStore,
    vectors: Vectors | None,
    postings: Postings | None,
) -> int:
    """Adds what is not there as it is of the passages at positions from `first` on; how many passages that were."""
    documents = [
        document(passage, None if postings is None else postings.weights_of(position, passage))
        for position, (_, passage) in enumerate(batch, first)
    ]
    there = store.digests([each["key"] for each in documents])
    new = [place for place, each in enumerate(documents) if there.get(each["key"]) != each["digest"]]
    if vectors is not None:
        _, places = vectors.place([batch[place] for place in new], len(new))
        for place, vector in zip(new, vectors.array()[places], strict=True):
            documents[place]["vector"] = vector.tolist()
    if new:
        store.upsert([documents[place] for place in new])
    return len(new)
