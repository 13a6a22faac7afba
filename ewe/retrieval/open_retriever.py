"""One retriever from a source and settings: the best that is installed, unless the settings say which."""

from collections.abc import Iterable
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from ewe.config import FilterConfig, RetrievalConfig
from ewe.config.registry import RETRIEVERS
from ewe.config.setting_names import DATASTORES, WIKIPEDIA_SAMPLE, hint
from ewe.errors import ConfigError, DatastoreError
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.dense import DenseRetriever, stored_vectors
from ewe.retrieval.encoders import BUILTIN_NAME, EXTRA, SentenceEncoder, builtin_encoder_path
from ewe.retrieval.hybrid import LEXICAL_AND_DENSE, HybridRetriever
from ewe.retrieval.ingest.fields import read_sources
from ewe.retrieval.reranker import CrossEncoderScorer, Reranked
from ewe.retrieval.source import Keep, PassageSource, Progress, as_source, passes
from ewe.retrieval.store import PassageStore
from ewe.retrieval.vector_stores.connect import connect, is_address
from ewe.retrieval.vector_stores.stored_retrievers import StoredBM25, StoredDense, metadata_of
from ewe.retrieval.vector_stores.vector_store import VectorStore
from ewe.retrieval.veracity import ConfidenceScorer, SourceTable, Weighed
from ewe.types import Passage
from ewe.types.protocols import Retriever

_NO_ENCODER = f"no sentence encoder: {EXTRA}"
_ENCODE_UNASKED = 2000  # passages, some 20 s on two cores


class DescribedRetriever(Retriever, Protocol):
    """A retriever that says what it is."""

    description: str


def open_retriever(
    source: str | Path | PassageSource | VectorStore | Iterable[Passage],
    settings: RetrievalConfig | None = None,
    progress: Progress | None = None,
) -> DescribedRetriever:
    """The retriever that the settings ask for; its `description` says which it is, and why no better one.

    source: the folder of a datastore, a JSONL file of passages, "wikipedia-sample", the address of a store that
    `ewe index push` filled, an open datastore or store, or passages.
    Indexes of a folder are made on the way if they are missing or stale; `progress` hears of (passages done, in all) of
    each. Raises DatastoreError for the source, ConfigError for settings that cannot be had here.
    """
    settings = settings or RetrievalConfig()
    opened = connect(source) if is_address(source) else source
    if isinstance(opened, VectorStore):
        retriever, reason = _over_store(opened, settings)
    else:
        opened = open_source(opened)
        kind, reason = _choose(opened, settings)
        keep = partial(passes, settings.filters) if settings.filters != FilterConfig() else None
        if keep is not None and not RETRIEVERS.takes(kind, "keep"):
            raise ConfigError(
                f"retrieval.filters: the retriever {kind!r} has no parameter `keep` to hold itself to them"
            )
        retriever = RETRIEVERS.make(kind, source=opened, settings=settings, keep=keep, progress=progress)
    if settings.reranker is not None:
        retriever = Reranked(retriever, CrossEncoderScorer(settings.reranker))
    scorer = veracity_scorer(settings)
    if scorer is not None:
        retriever = Weighed(retriever, scorer)
    if reason:
        retriever.description += f" ({reason})"
    return retriever


def open_source(source: str | Path | PassageSource | Iterable[Passage]) -> PassageSource:
    """What `open_retriever` reads its passages from. Raises DatastoreError, also for what can only be searched."""
    if not isinstance(source, str | Path):
        return as_source(source)
    if is_address(source):
        raise DatastoreError(f"{source} can only be searched: name the datastore that was pushed there")
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
    if isinstance(retriever, DenseRetriever | StoredDense):
        return retriever.encoder if isinstance(retriever.encoder, SentenceEncoder) else None, None
    if isinstance(retriever, HybridRetriever):
        parts = [models_of(part) for part in retriever.retrievers]
        return next((encoder for encoder, _ in parts if encoder), None), next((one for _, one in parts if one), None)
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


def encoder_for(source: PassageSource, settings: RetrievalConfig) -> tuple[SentenceEncoder | None, str]:
    """The encoder of the retriever that the settings ask for; None and, if nobody asked for that, why, for BM25."""
    kind, reason = _choose(source, settings)
    return (None, reason) if kind == "bm25" else (_encoder(settings), "")


def _choose(source: PassageSource, settings: RetrievalConfig) -> tuple[str, str]:
    """The kind of retriever, and why it is not hybrid although nobody asked for less."""
    if settings.retriever != "auto":
        return settings.retriever, ""
    if _lacks_encoder(settings, "faiss"):
        return "bm25", _NO_ENCODER
    name = settings.encoder or BUILTIN_NAME
    missing = len(source) - (stored_vectors(source, name) if isinstance(source, PassageStore) else 0)
    if missing > _ENCODE_UNASKED:
        return "bm25", f"{missing} passages have no vectors yet: retriever=hybrid makes them"
    return "hybrid", ""


def make_dense(
    source: PassageSource, settings: RetrievalConfig, keep: Keep | None, progress: Progress | None
) -> DenseRetriever:
    """The retriever "dense". Raises ConfigError without an encoder."""
    return DenseRetriever(source, _encoder(settings), settings.index, settings.recall, keep, progress)


def make_hybrid(
    source: PassageSource, settings: RetrievalConfig, keep: Keep | None, progress: Progress | None
) -> HybridRetriever:
    """The retriever "hybrid": both, fused by rank. Raises ConfigError without an encoder."""
    dense = make_dense(source, settings, keep, progress)
    return HybridRetriever([BM25Retriever(source, keep, progress), dense], LEXICAL_AND_DENSE)


def _over_store(store: VectorStore, settings: RetrievalConfig) -> tuple[DescribedRetriever, str]:
    """The retriever over a store outside this process, and why it is not hybrid although nobody asked for less.

    Raises ConfigError for a kind that reads passages itself.
    """
    kind, metadata = settings.retriever, metadata_of(store)
    has_vectors = metadata["encoder"] is not None
    lexical = StoredBM25(store, settings.filters)
    if kind == "bm25" or (kind == "auto" and (not has_vectors or _lacks_encoder(settings))):
        return lexical, "" if kind == "bm25" else _NO_ENCODER if has_vectors else "no vectors were pushed"
    if kind not in ("auto", "dense", "hybrid"):
        raise ConfigError(f"{store.uri} is searched by bm25, dense or hybrid, not by the retriever {kind!r}")
    dense = StoredDense(store, metadata, _encoder(settings), settings.filters)
    return dense if kind == "dense" else HybridRetriever([lexical, dense], LEXICAL_AND_DENSE), ""


def _lacks_encoder(settings: RetrievalConfig, *packages: str) -> bool:
    absent = [name for name in ("sentence_transformers", *packages) if find_spec(name) is None]
    return bool(absent) or (settings.encoder is None and builtin_encoder_path() is None)


def _encoder(settings: RetrievalConfig) -> SentenceEncoder:
    return SentenceEncoder(settings.encoder, settings.query_prefix, settings.passage_prefix)
