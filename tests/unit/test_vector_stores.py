"""Passages in Milvus, Elasticsearch and OpenSearch: the same finds as from the embedded datastore.

Milvus is Milvus Lite. The two others are a stand-in for their HTTP interface, and for BM25 also osmem, an
implementation of OpenSearch's interface for tests.
"""

import json
import logging
import time
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.util import find_spec
from types import SimpleNamespace
from uuid import uuid4

import pytest
from retrieval_bench import HashEncoder, ids, installed_encoder, made_up_passages
from search_server import search_server
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.config import FilterConfig, RetrievalConfig
from ewe.errors import ConfigError, DatastoreError
from ewe.open_datastore import open_datastore, open_passages
from ewe.retrieval import open_retriever as opening
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.open_retriever import open_retriever
from ewe.retrieval.source import day_range
from ewe.retrieval.store import PassageStore
from ewe.retrieval.vector_stores import elasticsearch, milvus
from ewe.retrieval.vector_stores.connect import connect, is_address
from ewe.retrieval.vector_stores.push import PushReport, push
from ewe.types import Passage

needs_milvus = pytest.mark.skipif(
    find_spec("pymilvus") is None or find_spec("milvus_lite") is None, reason="Milvus Lite needs the extra 'milvus'"
)
needs_osmem = pytest.mark.skipif(find_spec("osmem_server") is None, reason="osmem-server is not installed")
ODD = (
    Passage(
        "odd 'id' \"1\"\\", "It's the bridge of 1,904 and 3.5 km: «čapek».", "Bridge's", 'a "b" \\', "http://x_y/1%"
    ),
    Passage("dated", "A bridge was opened.", date="1990-05-03", source="news", url="http://xzy/1", veracity=0.25),
    Passage("month", "A bridge was closed.", date="1990-05", source="news", url="http://x_y/2", veracity=1 / 3),
    Passage("year", "A bridge was planned.", date="1989", source="blog", url="https://x/3", veracity=0.9),
    Passage("told", "A bridge fell.", "Bridges", metadata={"section": 'Re"sults', "page": 3, "tags": ["a=b", "c"]}),
    Passage("x" * 600, "A bridge\nwas painted ☃.", "", "", "u" * 9000, "long ago"),
)
PASSAGES = (*ODD, *made_up_passages(120))
QUERIES = ["w0 w3 w50 w50", "it's the bridge", "w1 w299", "3.5", "nothing of this", "", "\ud800 w2"]


@pytest.fixture(scope="module")
def milvus_file(tmp_path_factory):
    """A folder for collections; pymilvus looks whether an index is made every 10 ms and not every 500."""
    from pymilvus.client import grpc_handler

    briefly = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(min(seconds, 0.01)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpc_handler, "time", briefly)
        yield tmp_path_factory.mktemp("milvus") / "stores.db"


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
    return installed_encoder(monkeypatch)


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


def compare(address, passages=PASSAGES, **settings):
    """The store finds what the embedded datastore finds, and the same for both scores."""
    chosen = RetrievalConfig(**settings)
    found, expected = (open_retriever(each, chosen).retrieve(QUERIES, 10) for each in (address, passages))
    assert_same(found, expected)
    assert any(found)
    return found, expected


def test_dense_finds_and_scores_are_those_of_the_embedded_datastore(address, encoder):
    report = push(Datastore(PASSAGES), connect(address), encoder)
    assert report == PushReport(len(PASSAGES), 0, len(PASSAGES))
    found, expected = compare(address, retriever="dense")
    for row, wanted in zip(found, expected, strict=True):
        assert [scored.score for scored in row] == pytest.approx([scored.score for scored in wanted], abs=1e-4)
    retriever = open_retriever(address)
    kind = connect(address).kind
    assert retriever.description == f"hybrid: BM25 in {kind} + all-MiniLM-L6-v2 in {kind}"
    expected = open_retriever(PASSAGES, RetrievalConfig(retriever="hybrid")).retrieve(QUERIES[:2], 1)
    assert ids(retriever.retrieve(QUERIES[:2], 1)) == ids(expected)
    assert retriever.retrieve([], 3) == []


def test_bm25_finds_what_the_embedded_datastore_finds(address):
    push(Datastore(PASSAGES), connect(address), None)
    found, _ = compare(address, retriever="bm25")
    assert all(scored.score > 0 for row in found for scored in row)
    assert open_retriever(address).description == f"BM25 in {connect(address).kind} (no vectors were pushed)"


SCRIPTS = (
    Passage("han", "長江大橋於一九五七年建成。", "武漢長江大橋", "news"),
    Passage("han2", "南京長江大橋於一九六八年建成。", source="blog"),
    Passage("kana", "橋はひらがなで「はし」と書く。", source="news"),
    Passage("thai", "สะพานข้ามแม่น้ำเจ้าพระยาเปิดใช้ในปี 1932", source="news"),
    Passage("thai2", "แม่น้ำเจ้าพระยาไหลผ่านกรุงเทพ", source="blog"),
    Passage("signs", "☃ !!!", source="news"),
)


@needs_milvus
def test_bm25_in_milvus_has_the_scores_of_the_embedded_datastore_whatever_it_held_before(milvus_file, tmp_path):
    address = f"milvus+file:{milvus_file}/c{uuid4().hex}"
    queries = [*QUERIES, "長江大橋", "はし", "แม่น้ำเจ้าพระยา", "a bridge w0 w1", "☃"]
    with PassageStore.create(tmp_path / "store") as source:
        for passages in (PASSAGES[60:], PASSAGES[:60], SCRIPTS):
            source.add(passages)
            push(source, connect(address), None)
        for filters in (FilterConfig(), FilterConfig(sources=("news", "s1")), FilterConfig(without=("blog",))):
            chosen = RetrievalConfig(retriever="bm25", filters=filters)
            found, expected = (open_retriever(each, chosen).retrieve(queries, 200) for each in (address, source))
            for row, wanted in zip(found, expected, strict=True):
                scores = {scored.passage.id: scored.score for scored in wanted}
                assert {scored.passage.id: scored.score for scored in row} == pytest.approx(scores, rel=1e-5)
            assert [bool(row) for row in found[-5:]] == [True] * 4 + [False]


def test_words_of_one_dimension_are_one_word_to_milvus():
    [(dimension, weight)] = milvus._sparse({"plumless": 2.0, "buckeroo": 0.5}).items()  # equal checksums
    assert (dimension, weight) == (1 + 0x4DDB0C25, 2.5)
    assert 0 not in milvus._sparse(dict.fromkeys(map(str, range(1000)), 1.0))


@needs_milvus
def test_a_collection_that_was_released_is_loaded(milvus_file):
    address = f"milvus+file:{milvus_file}/c{uuid4().hex}"
    store = connect(address)
    push(Datastore(PASSAGES), store, None)
    store._client.release_collection(store._collection)
    assert open_retriever(address, RetrievalConfig(retriever="bm25")).retrieve(["bridge"], 1)[0]


@needs_milvus
def test_errors_of_milvus_are_raised_and_not_printed_too(milvus_file):
    store = connect(f"milvus+file:{milvus_file}/nothing")
    printed, handler = [], logging.Handler()
    handler.emit = printed.append
    logging.getLogger("pymilvus").addHandler(handler)
    with pytest.raises(DatastoreError, match="nothing"):
        len(store)
    logging.getLogger("pymilvus").removeHandler(handler)
    assert not printed


@needs_milvus
def test_a_text_that_is_too_long_for_milvus_is_named(milvus_file):
    store = connect(f"milvus+file:{milvus_file}/c{uuid4().hex}")
    with pytest.raises(DatastoreError, match=r"passage 'long' has one of 70,000: `ewe index build`"):
        push(Datastore([Passage("long", "\u0416" * 35_000)]), store, None)


FILTERS = (
    {"sources": ("news", 'a "b" \\', "s1")},
    {"sources": ("news", "s1"), "without": ("s1", "s2")},
    {"without": ("s0", "s1", 'a "b" \\')},
    {"url_prefix": "http://x_y/"},
    {"url_prefix": "http://x_y/1%"},
    {"min_veracity": 0.5},
    {"min_veracity": 1 / 3, "sources": ("news", "blog")},
    {"since": "1990"},
    {"since": "1990-05-04"},
    {"until": "1990-05-02", "since": "1989-12"},
    {"until": "1990-05"},
    {"where": {"section": ['Re"sults', "Methods"], "page": 3}},
    {"where": {"tags": "a=b"}},
)


@pytest.mark.parametrize("kind", ["bm25", "dense"])
def test_filters_hold_in_the_store(address, encoder, kind):
    push(Datastore(PASSAGES), connect(address), encoder)
    for values in FILTERS:
        chosen = RetrievalConfig(retriever=kind, filters=FilterConfig(**values))
        asked = ["a bridge w0 w1 w2"]
        found, expected = (open_retriever(each, chosen).retrieve(asked, 5) for each in (address, PASSAGES))
        assert_same(found, expected)
        assert found[0], values


def test_a_second_push_changes_nothing_and_a_changed_passage_is_replaced(address, encoder):
    push(Datastore(PASSAGES), connect(address), encoder)
    before = len(encoder.encoded)
    assert push(Datastore(PASSAGES), connect(address), encoder) == PushReport(0, len(PASSAGES), len(PASSAGES))
    assert not set(encoder.encoded[before:]) & {passage.text for passage in PASSAGES}
    changed = (replace(PASSAGES[0], text="Nobody crosses the ocean.", veracity=0.5), *PASSAGES[1:])
    # Where a store is given weights, those of all passages change.
    pushed = 1 if connect(address).computes_bm25 else len(PASSAGES)
    report = push(Datastore(changed), connect(address), encoder)
    assert report == PushReport(pushed, len(PASSAGES) - pushed, len(PASSAGES))
    retriever = open_retriever(address, RetrievalConfig(retriever="dense"))
    assert retriever.retrieve(["nobody crosses the ocean"], 1)[0][0].passage == changed[0]


def test_an_interrupted_push_goes_on(address, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("ewe.retrieval.vector_stores.push._BATCH", 20)
    with PassageStore.create(tmp_path / "store") as source:
        source.add(PASSAGES)
        encoder.fail_after, told = 40, []
        with pytest.raises(KeyboardInterrupt):
            push(source, connect(address), encoder, lambda *done: told.append(done))
        encoder.fail_after = None
        report = push(source, connect(address), encoder)
        assert told == [(20, len(source)), (40, len(source))]
        assert report == PushReport(len(source) - 40, 40, len(source))
        compare(address, source, retriever="dense")


def test_what_was_removed_is_not_pushed_and_what_is_there_stays(address, encoder, tmp_path):
    with PassageStore.create(tmp_path / "store") as source:
        source.add(PASSAGES)
        source.remove(passage.id for passage in PASSAGES[1::2])
        left = len(source)
        assert push(source, connect(address), encoder) == PushReport(left, 0, left)
        compare(address, source, retriever="dense")
        source.remove([PASSAGES[0].id])
        source.add(PASSAGES[1:2])
        pushed = 1 if connect(address).computes_bm25 else left
        assert push(source, connect(address), encoder) == PushReport(pushed, left - pushed, left + 1)
    done = CliRunner().invoke(
        app, ["index", "push", str(tmp_path / "store"), address, "--set", "retrieval.retriever=dense"]
    )
    assert "it holds 1 passage that" in done.output, done.output


def test_another_encoder_is_refused(address, encoder, monkeypatch):
    push(Datastore(PASSAGES), connect(address), encoder)
    dense = RetrievalConfig(retriever="dense")
    for other in (HashEncoder(name="other", salt="x"), HashEncoder(dimension=16)):
        with pytest.raises(
            DatastoreError, match=rf"all-MiniLM-L6-v2 \(32 .*those of {other.name} \({other.dimension}\)"
        ):
            push(Datastore(PASSAGES), connect(address), other)
        monkeypatch.setattr(opening, "SentenceEncoder", lambda *_, other=other: other)
        with pytest.raises(DatastoreError, match=r"set retrieval\.retriever and retrieval\.encoder"):
            open_retriever(address, dense)
    with pytest.raises(DatastoreError, match="the settings ask for none"):
        push(Datastore(PASSAGES), connect(address), None)
    assert len(connect(address)) == len(PASSAGES)


def test_what_is_not_there_or_was_not_pushed_is_refused(address, encoder):
    with pytest.raises(DatastoreError, match=r"does not exist: `ewe index push"):
        open_retriever(address)
    push(Datastore(PASSAGES), connect(address), None)
    with pytest.raises(DatastoreError, match="holds no vectors, the settings ask for those of"):
        push(Datastore(PASSAGES), connect(address), encoder)
    with pytest.raises(DatastoreError, match="holds no vectors"):
        open_retriever(address, RetrievalConfig(retriever="hybrid"))
    with pytest.raises(DatastoreError, match="can only be searched"):
        open_passages(address)
    _, summary = open_datastore(address, RetrievalConfig(retriever="bm25"))
    assert str(summary) == f"{address.rpartition('/')[2]} ({len(PASSAGES)} passages, BM25 in {connect(address).kind})"


@pytest.fixture
def server():
    with search_server("elasticsearch") as made:
        yield made


def test_an_index_of_somebody_else_is_left_alone(server):
    server.indexes["passages"] = {"mappings": {}, "documents": {}, "visible": {}}
    with pytest.raises(DatastoreError, match="was not made by `ewe index push`"):
        push(Datastore(PASSAGES), connect(server.address), None)


def test_a_part_of_an_answer_is_none(server):
    push(Datastore(PASSAGES), connect(server.address), None)
    retriever = open_retriever(server.address)
    assert retriever.retrieve(["bridge"], 3)[0]
    server.shards = {**server.shards, "failed": 1}
    for ask in (lambda: retriever.retrieve(["bridge"], 3), lambda: len(connect(server.address))):
        with pytest.raises(DatastoreError, match=r"/passages answered in part only: 1 of its shards failed"):
            ask()


@pytest.mark.parametrize(
    "answer",
    [
        *([], [1], "a page", 1, {}, {"count": "many", "docs": [{"found": True}], "errors": True, "items": []}),
        {"responses": None, "docs": None, "count": None, "errors": 1, "_shards": []},
        {"responses": [{"hits": {"hits": [{"_source": {"odd": 1}, "_score": 1.0}]}}]},
        {"passages": {"mappings": None}, "responses": [{"hits": {"hits": [{}]}}], "errors": True, "items": [{}]},
    ],
)
def test_what_answers_in_another_form_is_no_store(server, answer):
    store = connect(server.address)
    server.foreign = answer
    for ask in (
        *(store.__len__, lambda: store.digests(["a"]), lambda: store.upsert([{"key": "a"}])),
        *(lambda: store.search_words([["a"]], 1, FilterConfig()), store.metadata),
    ):
        with suppress(DatastoreError):  # an empty answer may be one
            ask()
    with pytest.raises(DatastoreError, match=r"is no Elasticsearch: its answer has another form"):
        len(store)


def test_a_closed_store_holds_no_connection(server):
    store = connect(server.address)
    store.metadata()
    assert len(store._pool.pools) == 1
    store.close()
    assert len(store._pool.pools) == 0


@needs_milvus
def test_a_closed_client_says_so(milvus_file):
    store = connect(f"milvus+file:{milvus_file}/c{uuid4().hex}")
    store.close()
    with pytest.raises(DatastoreError, match="connection"):
        store.metadata()


@pytest.mark.parametrize(("token", "sent"), [("key", "ApiKey key"), ("ann:pass", "Basic YW5uOnBhc3M="), ("", None)])
def test_the_token_comes_from_the_environment(server, monkeypatch, token, sent):
    monkeypatch.setenv("EWE_DATASTORE_TOKEN", token)
    assert connect(server.address).metadata() is None
    assert server.tokens == {sent}


def test_a_busy_server_is_asked_again_and_errors_name_it(server, monkeypatch):
    monkeypatch.setattr(elasticsearch, "_RETRY", elasticsearch._RETRY.new(backoff_factor=0))
    server.refuse = 3  # it asks for a day, which nobody waits
    store = connect(server.address)
    assert push(Datastore(PASSAGES[:3]), store, None).pushed == 3
    with pytest.raises(DatastoreError, match=r"127\.0\.0\.1:\d+/passages refused a passage: .*odd"):
        store.upsert([{"key": "k", "odd": 1}])
    server.refuse = 99
    with pytest.raises(DatastoreError, match=r"answered HTTP 429: .*too busy"):
        len(store)
    with pytest.raises(DatastoreError, match="cannot be reached, or is no OpenSearch"):
        connect("opensearch+http://127.0.0.1:1/passages").metadata()


@pytest.mark.parametrize(
    "address",
    [
        "milvus+file:passages",
        "milvus+ftp://host/passages",
        "milvus:store.db/passages",
        "elasticsearch+https://host:9200/",
        "elasticsearch+https:///passages",
        "elasticsearch+https://[host/passages",
        "milvus+http://ann:hidden@host:port/passages",
    ],
)
def test_an_address_that_is_none_is_refused(address):
    assert is_address(address) == ("+" in address)
    with pytest.raises(ConfigError, match=r"is no address") as caught:
        connect(address)
    assert "hidden" not in str(caught.value)


def test_secrets_in_an_address_are_refused_and_not_repeated():
    for address in ("elasticsearch+https://ann:hidden@host/passages", "milvus+https://host/passages?token=hidden"):
        with pytest.raises(ConfigError, match="EWE_DATASTORE_TOKEN") as caught:
            connect(address)
        assert "hidden" not in str(caught.value)


def test_the_commands_push_and_search(server, tmp_path):
    path, runner = tmp_path / "passages.jsonl", CliRunner()
    path.write_text("".join(json.dumps(asdict(passage)) + "\n" for passage in PASSAGES), encoding="utf-8")
    bm25 = ["--set", "retrieval.retriever=bm25"]
    count = len(PASSAGES)
    for said in (
        f"{count} passages pushed; {count} are in",
        f"0 passages pushed, {count} were there already; {count} are in",
    ):
        done = runner.invoke(app, ["index", "push", str(path), server.address, *bm25])
        assert done.exit_code == 0, done.output
        assert said in done.output
        assert f"--set datastore={server.address}" in done.output
    found = runner.invoke(app, ["index", "search", server.address, "its bridge of 1904", "--json", "-k", "1"])
    assert json.loads(found.stdout)[0]["id"] == PASSAGES[0].id
    assert server.calls["POST _bulk"] == 1


@needs_osmem
def test_another_implementation_of_the_interface_understands_the_requests():
    from osmem_server import OsmemServer

    with OsmemServer.start() as osmem:
        address = f"opensearch+{osmem.url}/passages"
        for pushed in (len(PASSAGES), 0):
            assert push(Datastore(PASSAGES), connect(address), None).pushed == pushed
        for values in ({}, *FILTERS):
            # Its BM25 heeds neither k1 nor b: what is found is compared, not in which order.
            chosen = RetrievalConfig(retriever="bm25", filters=FilterConfig(**values))
            found, expected = (open_retriever(each, chosen).retrieve(QUERIES, 200) for each in (address, PASSAGES))
            assert [set(row) for row in ids(found)] == [set(row) for row in ids(expected)]
        assert {scored.passage for scored in found[1]} == {scored.passage for scored in expected[1]}


@pytest.mark.parametrize(
    ("date", "days"),
    [("1990-05-03T12:00", (19900503, 19900503)), ("1990-05", (19900500, 19900599)), ("1990", (19900000, 19909999))],
)
def test_a_date_is_a_range_of_days(date, days):
    assert day_range(date) == days
    first, last = day_range("in 1990")
    assert first > day_range("9999")[1]
    assert last < day_range("0000")[0]
