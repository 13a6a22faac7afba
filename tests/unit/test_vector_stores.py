"""Passages in Milvus, Elasticsearch and OpenSearch: the same finds as from the embedded datastore.

Milvus is Milvus Lite. The two others are a stand-in for their HTTP interface, and for BM25 also osmem, an
implementation of OpenSearch's interface for tests.
"""

from importlib.util import find_spec
from uuid import uuid4

import pytest
from retrieval_bench import HashEncoder, ids, made_up_passages
from search_server import search_server
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.components import open_datastore, open_passages
from ewe.config import FilterConfig, RetrievalConfig
from ewe.errors import ConfigError, DatastoreError
from ewe.retrieval import open_retriever as opening
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.open_retriever import models_of, open_retriever
from ewe.retrieval.store import PassageStore
from ewe.retrieval.vector_stores.connect import connect, is_address
from ewe.retrieval.vector_stores.push import PushReport, push
from ewe.types import Passage

needs_milvus = pytest.mark.skipif(
    find_spec("pymilvus") is None or find_spec("milvus_lite") is None, reason="Milvus Lite needs the extra 'milvus'"
)
needs_osmem = pytest.mark.skipif(find_spec("osmem_server") is None, reason="osmem-server is not installed")
ODD = (
    Passage("odd 'id' \"1\"\\", "It's the bridge of 1,904 and 3.5 km: «čapek».", "Bridge's", 'a "b" \\', "http://x_y/1%"),
    Passage("dated", "A bridge was opened.", date="1990-05-03", source="news", url="http://xzy/1", veracity=0.25),
    Passage("month", "A bridge was closed.", date="1990-05", source="news", url="http://x_y/2", veracity=1 / 3),
    Passage("year", "A bridge was planned.", date="1989", source="blog", url="https://x/3", veracity=0.9),
    Passage("x" * 600, "A bridge\nwas painted ☃.", "", "", "u" * 9000, "long ago"),
)
PASSAGES = (*ODD, *made_up_passages(120))
QUERIES = ["w0 w3 w50 w50", "it's the bridge", "w1 w299", "3.5", "nothing of this", "", "\ud800 w2"]


@pytest.fixture(scope="module")
def milvus_file(tmp_path_factory):
    return tmp_path_factory.mktemp("milvus") / "stores.db"


@pytest.fixture(
    params=[pytest.param("milvus", marks=needs_milvus), "elasticsearch", "opensearch"],
)
def address(request):
    """Of a collection that is not there yet."""
    if request.param == "milvus":
        yield f"milvus+file:{request.getfixturevalue('milvus_file')}/c{uuid4().hex}"
        return
    with search_server(request.param) as server:
        yield server.address


@pytest.fixture
def encoder(monkeypatch):
    """An installed encoder without weights."""
    pytest.importorskip("faiss", reason="dense retrieval needs the extra 'dense'")
    made = HashEncoder(name="all-MiniLM-L6-v2")
    monkeypatch.setattr(opening, "SentenceEncoder", lambda *_: made)
    monkeypatch.setattr(opening, "builtin_encoder_path", lambda: "there")
    monkeypatch.setattr(opening, "find_spec", lambda _: "there")
    return made


def settings(**values):
    return RetrievalConfig(**values)


def found_ids(retriever, top_k=10):
    return [ids(row) for row in retriever.retrieve(QUERIES, top_k)]


def assert_same(found, expected):
    """The same passages, with all their fields; those with equal scores may change places."""
    for row, wanted in zip(found, expected, strict=True):
        assert len(row) == len(wanted)
        by_id = {scored.passage.id: scored for scored in wanted}
        last = wanted[-1].score if wanted else 0.0
        for scored in row:
            other = by_id.get(scored.passage.id)
            assert other is not None or scored.score == pytest.approx(last, rel=1e-3)
            assert other is None or other.passage == scored.passage


def test_dense_finds_and_scores_are_those_of_the_embedded_datastore(address, encoder):
    report = push(Datastore(PASSAGES), connect(address), encoder)
    assert report == PushReport(len(PASSAGES), 0, len(PASSAGES))
    dense = RetrievalConfig(retriever="dense")
    retriever, embedded = open_retriever(address, dense), open_retriever(PASSAGES, dense)
    found, expected = (each.retrieve(QUERIES, 10) for each in (retriever, embedded))
    assert_same(found, expected)
    for row, wanted in zip(found, expected, strict=True):
        assert [scored.score for scored in row] == pytest.approx([scored.score for scored in wanted], abs=1e-4)
    assert retriever.retrieve([], 3) == []


def test_bm25_finds_what_the_embedded_datastore_finds(address):
    push(Datastore(PASSAGES), connect(address), None)
    retriever = open_retriever(address, RetrievalConfig(retriever="bm25"))
    assert_same(retriever.retrieve(QUERIES, 10), open_retriever(PASSAGES, RetrievalConfig(retriever="bm25")).retrieve(QUERIES, 10))
    assert all(scored.score > 0 for row in retriever.retrieve(QUERIES, 10) for scored in row)
