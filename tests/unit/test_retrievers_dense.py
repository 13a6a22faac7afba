"""Dense retrieval against brute force in float64, and its files against kills, damage and other encoders."""

import json
from itertools import count

import numpy as np
import pytest
from retrieval_bench import HashEncoder, ids, made_up_passages

from ewe.errors import DatastoreError
from ewe.retrieval import vectors as vector_files
from ewe.retrieval.dense import DenseRetriever, stored_vectors
from ewe.retrieval.dense_index import DenseIndex, resolve_kind
from ewe.retrieval.store import PassageStore
from ewe.types import Passage
from ewe.types.protocols import Retriever

pytest.importorskip("faiss", reason="dense retrieval needs the extra 'dense'")

PASSAGES = made_up_passages(400)
QUERIES = ["w0 w1 w250", "t3 w17", "w299 w4", "w9"]
APPROXIMATE = ["ivf", "hnsw", "pq"]


def clustered(count, dimension=32, clusters=40, seed=0):
    """Unit vectors around centres: float32 [count, dimension], and as many queries as centres near them."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((clusters, dimension))
    vectors = centres[random.integers(0, clusters, count)] + 0.5 * random.standard_normal((count, dimension))
    queries = centres + 0.5 * random.standard_normal((clusters, dimension))
    return [(array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32) for array in (vectors, queries)]


def exact(vectors, queries, top_k, allowed=None):
    scores = queries.astype(np.float64) @ vectors.astype(np.float64).T
    if allowed is not None:
        scores[:, ~allowed] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :top_k], -np.sort(-scores, axis=1)[:, :top_k]


def recall_of(found, expected):
    return np.mean(
        [
            len(set(row.tolist()) & set(best.tolist())) / len(best)
            for (row, _), best in zip(found, expected, strict=True)
        ]
    )


def test_flat_is_exact():
    vectors, queries = clustered(900)
    positions, scores = exact(vectors, queries, 7)
    index = DenseIndex.build("flat", vectors, np.arange(len(vectors)))
    for row, (found, values) in enumerate(index.search(queries, 7)):
        assert found.tolist() == positions[row].tolist()
        np.testing.assert_allclose(values, scores[row], atol=1e-6)


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_an_approximate_index_finds_the_share_that_it_is_tuned_to(kind):
    vectors, queries = clustered(3000)
    index = DenseIndex.build(kind, vectors, np.arange(len(vectors)), recall=0.95)
    expected = exact(vectors, queries, 10)[0]
    assert recall_of(index.search(queries, 10), expected) >= 0.95
    tuned = index.effort
    index.effort = 1
    worse = recall_of(index.search(queries, 1), expected[:, :1])
    index.effort = tuned * 4
    assert recall_of(index.search(queries, 10), expected) >= max(0.97, worse)


def test_more_recall_costs_more_effort():
    vectors, _ = clustered(3000, clusters=300)
    low, high = (DenseIndex.build("ivf", vectors, np.arange(3000), recall=recall).effort for recall in (0.6, 0.999))
    assert low < high


def test_compressed_vectors_are_small_and_keep_most_neighbours(tmp_path):
    vectors, queries = clustered(3000)
    sizes = {}
    for kind in ("flat", "pq"):
        index = DenseIndex.build(kind, vectors, np.arange(3000))
        index.save(tmp_path / kind)
        sizes[kind] = (tmp_path / kind).stat().st_size
    assert sizes["pq"] < sizes["flat"] / 2
    assert recall_of(index.search(queries, 10), exact(vectors, queries, 10)[0]) > 0.5


@pytest.mark.parametrize("kind", ["flat", *APPROXIMATE])
def test_a_saved_index_searches_as_before_and_only_what_is_allowed(kind, tmp_path):
    vectors, queries = clustered(2000)
    index = DenseIndex.build(kind, vectors, np.arange(2000))
    index.save(tmp_path / "index")
    loaded = DenseIndex.load(tmp_path / "index")
    assert (len(loaded), loaded.dimension, loaded.effort) == (2000, 32, index.effort)
    for one, other in zip(index.search(queries, 5), loaded.search(queries, 5), strict=True):
        assert one[0].tolist() == other[0].tolist()
    allowed = np.zeros(2000, dtype=bool)
    allowed[::40] = True
    found = loaded.search(queries, 10, allowed)
    assert all(allowed[row].all() and len(row) == 10 for row, _ in found)
    if kind != "pq":
        assert recall_of(found, exact(vectors, queries, 10, allowed)[0]) >= 0.95
    assert all(len(row) == 0 for row, _ in loaded.search(queries, 3, np.zeros(2000, dtype=bool)))


@pytest.mark.parametrize(
    ("kind", "count", "made"),
    [("auto", 50_000, "flat"), ("auto", 50_001, "ivf"), ("ivf", 100, "flat"), ("pq", 255, "flat"), ("pq", 256, "pq")],
)
def test_the_kind_suits_the_number_of_vectors(kind, count, made):
    assert resolve_kind(kind, count) == made


@pytest.mark.parametrize("kind", ["ivf", "pq"])
def test_the_smallest_learned_index_works(kind):
    vectors, queries = clustered(256)
    index = DenseIndex.build(kind, vectors, np.arange(256))
    assert all(len(row) == 5 for row, _ in index.search(queries, 5))


def test_passages_are_ranked_by_the_inner_product():
    encoder = HashEncoder()
    retriever = DenseRetriever(PASSAGES, encoder)
    assert isinstance(retriever, Retriever)
    assert retriever.description == "hash (flat)"
    texts = [f"{passage.title}\n{passage.text}" for passage in PASSAGES]
    scores = encoder.encode_queries(QUERIES).astype(np.float64) @ encoder.encode_passages(texts).astype(np.float64).T
    for row, expected in zip(retriever.retrieve(QUERIES, 6), scores, strict=True):
        best = np.argsort(-expected, kind="stable")[:6]
        np.testing.assert_allclose([scored.score for scored in row], expected[best], atol=1e-6)
        assert {scored.passage.id for scored in row} == {PASSAGES[place].id for place in best}
    with pytest.raises(ValueError, match="top_k"):
        retriever.retrieve(QUERIES, 0)


def test_nothing_in_nothing_out():
    assert DenseRetriever([], HashEncoder()).retrieve(["w1"], 3) == [[]]
    assert DenseRetriever(PASSAGES, HashEncoder()).retrieve([], 3) == []
    assert len(DenseRetriever(PASSAGES[:2], HashEncoder()).retrieve(["w1"], 3)[0]) == 2


@pytest.fixture
def store(tmp_path):
    with PassageStore.create(tmp_path / "store") as opened:
        opened.add(PASSAGES)
        yield opened


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_a_stored_index_finds_what_one_in_memory_finds(store, kind):
    expected = ids(DenseRetriever(PASSAGES, HashEncoder(), kind).retrieve(QUERIES, 9))
    first = HashEncoder()
    assert ids(DenseRetriever(store, first, kind).retrieve(QUERIES, 9)) == expected
    again = HashEncoder()
    assert ids(DenseRetriever(store, again, kind).retrieve(QUERIES, 9)) == expected
    assert len(first.encoded) > 400
    assert len(again.encoded) == 1  # the probe


def test_an_encoder_that_says_it_is_the_same_is_not_run_before_the_first_query(store):
    def marked(fingerprint, **options):
        encoder = HashEncoder(**options)
        encoder.fingerprint = fingerprint
        return encoder

    expected = ids(DenseRetriever(store, marked("one")).retrieve(QUERIES, 5))
    again = marked("one")
    assert ids(DenseRetriever(store, again).retrieve(QUERIES, 5)) == expected
    assert again.encoded == []
    for other, encoded in ((marked("two"), 1), (HashEncoder(), 1), (marked("three", salt="x"), 400)):
        DenseRetriever(store, other)
        assert len(other.encoded) >= encoded
        assert (len(other.encoded) == 1) == (encoded == 1)


def test_only_new_texts_are_encoded(store):
    DenseRetriever(store, HashEncoder())
    store.remove(["p3"])
    store.add([Passage("new", "zebra zebra")])
    encoder = HashEncoder()
    retriever = DenseRetriever(store, encoder)
    assert [text for text in encoder.encoded if "zebra" in text or text.startswith("t")] == ["zebra zebra"]
    assert ids(retriever.retrieve(["zebra"], 1)) == [["new"]]
    assert "p3" not in ids(retriever.retrieve(["w1"], 400))[0]
    assert stored_vectors(store, "hash") == 401


def test_another_encoder_under_the_same_name_starts_anew(store):
    DenseRetriever(store, HashEncoder())
    for other in (HashEncoder(salt="x"), HashEncoder(prefix="passage: "), HashEncoder(dimension=16)):
        retriever = DenseRetriever(store, other)
        assert len(other.encoded) > 400
        assert ids(retriever.retrieve(QUERIES, 5)) == ids(DenseRetriever(PASSAGES, other).retrieve(QUERIES, 5))


def test_other_kinds_use_the_same_vectors(store):
    DenseRetriever(store, HashEncoder())
    encoder = HashEncoder()
    assert DenseRetriever(store, encoder, "hnsw").description == "hash (hnsw)"
    assert len(encoder.encoded) == 2  # the probe, when opening and when building


def test_a_killed_build_goes_on_where_it_was(store, monkeypatch):
    monkeypatch.setattr(vector_files, "_BATCH", 100)
    killed = HashEncoder()
    killed.fail_after = 250
    with pytest.raises(KeyboardInterrupt):
        DenseRetriever(store, killed)
    folder = store.index_dir("dense-hash")
    with (folder / "vectors.f32").open("ab") as file:
        file.write(b"half a row")
    encoder = HashEncoder()
    seen = []
    retriever = DenseRetriever(store, encoder, progress=lambda done, total: seen.append((done, total)))
    assert sum(text.startswith("t") for text in encoder.encoded) == 400 - stored_in(killed)
    assert seen == [(100, 400), (200, 400), (300, 400), (400, 400)]
    assert ids(retriever.retrieve(QUERIES, 9)) == ids(DenseRetriever(PASSAGES, HashEncoder()).retrieve(QUERIES, 9))
    assert not list(folder.glob("data-*/*.partial"))


def stored_in(encoder):
    return sum(text.startswith("t") for text in encoder.encoded)


@pytest.mark.parametrize("name", ["index.faiss", "rowids.npy"])
def test_a_damaged_file_is_made_again(store, name):
    DenseRetriever(store, HashEncoder())
    [path] = store.index_dir("dense-hash").glob(f"data-*/{name}")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    expected = DenseRetriever(PASSAGES, HashEncoder()).retrieve(QUERIES, 9)
    assert ids(DenseRetriever(store, HashEncoder()).retrieve(QUERIES, 9)) == ids(expected)


def test_a_damaged_vector_is_encoded_again(store):
    DenseRetriever(store, HashEncoder())
    path = store.index_dir("dense-hash") / "vectors.f32"
    data = bytearray(path.read_bytes())
    data[4 * 32 * 17 + 5] ^= 0xFF
    path.write_bytes(data)
    store.remove(["p0"])
    encoder = HashEncoder()
    retriever = DenseRetriever(store, encoder)
    assert sum(text.startswith("t") for text in encoder.encoded) == 1
    assert ids(retriever.retrieve(QUERIES, 9)) == ids(DenseRetriever(PASSAGES[1:], HashEncoder()).retrieve(QUERIES, 9))


def test_a_damaged_encoder_file_means_other_vectors(store):
    DenseRetriever(store, HashEncoder())
    for content in ("", "{}", json.dumps({"probe": "x"}), json.dumps({"probe": [0.0] * 32})):
        (store.index_dir("dense-hash") / "encoder.json").write_text(content)
        encoder = HashEncoder()
        DenseRetriever(store, encoder)
        assert len(encoder.encoded) > 400


@pytest.mark.parametrize(("synced", "name"), [(0, "encoder.json"), (1, "vectors.f32"), (2, "keys.u64")])
def test_a_full_disk_is_an_error_that_names_the_file(store, monkeypatch, synced, name):
    calls = count()

    def full(_):
        if next(calls) == synced:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(vector_files.os, "fsync", full)
        with pytest.raises(DatastoreError, match=rf"{name}: No space left"):
            DenseRetriever(store, HashEncoder())
    assert ids(DenseRetriever(store, HashEncoder()).retrieve(["w17"], 3)) == ids(
        DenseRetriever(PASSAGES, HashEncoder()).retrieve(["w17"], 3)
    )


def test_filters_apply_before_the_search(store):
    def keep(passage):
        return passage.id in {"p7", "p8", "p9"}

    for source in (PASSAGES, store):
        row = DenseRetriever(source, HashEncoder(), keep=keep).retrieve(["w299"], 2)[0]
        assert len(row) == 2
        assert {scored.passage.id for scored in row} < {"p7", "p8", "p9"}
