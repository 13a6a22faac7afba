"""One retriever from a source and settings: the best that is installed, unless the settings say which."""

from collections.abc import Iterable
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from ewe.config import FilterConfig, RetrievalConfig
from ewe.errors import DatastoreError
from ewe.protocols import Retriever
from ewe.registry import RETRIEVERS
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.dense import DenseRetriever, stored_vectors
from ewe.retrieval.encoders import BUILTIN_NAME, EXTRA, SentenceEncoder, builtin_encoder_path
from ewe.retrieval.hybrid import LEXICAL_AND_DENSE, HybridRetriever
from ewe.retrieval.ingest.fields import read_sources
from ewe.retrieval.reranker import CrossEncoderScorer, Reranked
from ewe.retrieval.source import Keep, PassageSource, Progress, as_source, passes
from ewe.retrieval.store import PassageStore
from ewe.retrieval.veracity import ConfidenceScorer, SourceTable, Weighed
from ewe.types import Passage
from ewe.vocabulary import DATASTORES, WIKIPEDIA_SAMPLE, hint

_ENCODE_UNASKED = 2000  # passages, some 20 s on two cores


class DescribedRetriever(Retriever, Protocol):
    """A retriever that says what it is."""

    description: str


def open_retriever(
    source: str | Path | PassageSource | Iterable[Passage],
    settings: RetrievalConfig | None = None,
    progress: Progress | None = None,
) -> DescribedRetriever:
    """The retriever that the settings ask for; its `description` says which it is, and why no better one.

    source: the folder of a datastore, a JSONL file of passages, "wikipedia-sample", an open datastore, or passages.
    Indexes of a folder are made on the way if they are missing or stale; `progress` hears of (passages done, in all) of
    each. Raises DatastoreError for the source, ConfigError for settings that cannot be had here.
    """
    settings = settings or RetrievalConfig()
    opened = open_source(source)
    kind, reason = _choose(opened, settings)
    keep = partial(passes, settings.filters) if settings.filters != FilterConfig() else None
    retriever: DescribedRetriever = RETRIEVERS.make(
        kind, source=opened, settings=settings, keep=keep, progress=progress
    )
    if settings.reranker is not None:
        retriever = Reranked(retriever, CrossEncoderScorer(settings.reranker))
    scorer = veracity_scorer(settings)
    if scorer is not None:
        retriever = Weighed(retriever, scorer)
    if reason:
        retriever.description += f" ({reason})"
    return retriever


def open_source(source: str | Path | PassageSource | Iterable[Passage]) -> PassageSource:
    """What `open_retriever` reads its passages from. Raises DatastoreError."""
    if not isinstance(source, str | Path):
        return as_source(source)
    if source == WIKIPEDIA_SAMPLE:
        return Datastore.from_jsonl(Path(str(files("ewe"))) / "retrieval" / "wikipedia_sample" / "passages.jsonl")
    path = Path(source)
    if path.is_dir():
        return PassageStore.open(path)
    if not path.exists():
        raise DatastoreError(f"the datastore {path} does not exist; {hint(path, DATASTORES)}")
    return Datastore.from_jsonl(path)


def models_of(retriever: object) -> tuple[SentenceEncoder | None, CrossEncoderScorer | None]:
    """The sentence encoder and the reranker that a retriever works with; None where it has none of ours."""
    if isinstance(retriever, DenseRetriever):
        return retriever.encoder if isinstance(retriever.encoder, SentenceEncoder) else None, None
    if isinstance(retriever, HybridRetriever):
        found = [models_of(part) for part in retriever.retrievers]
        return next((encoder for encoder, _ in found if encoder), None), next((one for _, one in found if one), None)
    if isinstance(retriever, Reranked):
        return models_of(retriever.retriever)[0], retriever.scorer
    return models_of(retriever.retriever) if isinstance(retriever, Weighed) else (None, None)


def veracity_scorer(settings: RetrievalConfig) -> ConfidenceScorer | SourceTable | None:
    """What sets the veracity of passages on the way in; None if passages keep their own. Raises DatastoreError."""
    table = SourceTable(read_sources(Path(settings.sources)) if settings.sources is not None else {})
    if settings.half_life_days is None and not settings.agreement:
        return table if table.table else None
    by_source, by_age, by_agreement = ConfidenceScorer().weights
    weights = by_source, by_age, by_agreement if settings.agreement else 0.0
    return ConfidenceScorer(table, settings.half_life_days, weights)


def _choose(source: PassageSource, settings: RetrievalConfig) -> tuple[str, str]:
    """The kind of retriever, and why it is not hybrid although nobody asked for less."""
    if settings.retriever != "auto":
        return settings.retriever, ""
    absent = [name for name in ("sentence_transformers", "faiss") if find_spec(name) is None]
    if absent or (settings.encoder is None and builtin_encoder_path() is None):
        return "bm25", f"no sentence encoder: {EXTRA}"
    name = settings.encoder or BUILTIN_NAME
    missing = len(source) - (stored_vectors(source, name) if isinstance(source, PassageStore) else 0)
    if missing > _ENCODE_UNASKED:
        return "bm25", f"{missing} passages have no vectors yet: retriever=hybrid makes them"
    return "hybrid", ""


def make_dense(
    source: PassageSource, settings: RetrievalConfig, keep: Keep | None, progress: Progress | None
) -> DenseRetriever:
    """The retriever "dense". Raises ConfigError without an encoder."""
    encoder = SentenceEncoder(settings.encoder, settings.query_prefix, settings.passage_prefix)
    return DenseRetriever(source, encoder, settings.index, settings.recall, keep, progress)


def make_hybrid(
    source: PassageSource, settings: RetrievalConfig, keep: Keep | None, progress: Progress | None
) -> HybridRetriever:
    """The retriever "hybrid": both, fused by rank. Raises ConfigError without an encoder."""
    dense = make_dense(source, settings, keep, progress)
    return HybridRetriever([BM25Retriever(source, keep, progress), dense], LEXICAL_AND_DENSE)
