"""BM25 against its definition and against bm25s, in memory and from disk."""

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_bench import ids, made_up_passages

from ewe.errors import DatastoreError
from ewe.retrieval import bm25
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.datastore import Datastore
from ewe.retrieval.store import PassageStore
from ewe.text.words import words
from ewe.types import Passage

PASSAGES = made_up_passages(500)
QUERIES = ["w0 w1 w250", "t3 w17", "w299", "w5 w5 nothing", "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10"]


def by_definition(passages, query):
    """float64 [passages], straight from the formula."""
    documents = [Counter(words(f"{passage.title}\n{passage.text}")) for passage in passages]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths)
    scores = np.zeros(len(passages))
    for word in set(words(query)):
        holding = sum(word in document for document in documents)
        idf = math.log(1 + (len(passages) - holding + 0.5) / (holding + 0.5))
        for place, document in enumerate(documents):
            times = document[word]
            scores[place] += idf * times / (times + 1.5 * (0.25 + 0.75 * lengths[place] / mean)) if times else 0.0
    return scores


@pytest.fixture
def store(tmp_path):
    with PassageStore.create(tmp_path / "store") as opened:
        opened.add(PASSAGES)
        yield opened


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("batch", [10_000, 64])
def test_scores_and_order_are_those_of_the_definition(query, batch, monkeypatch):
    monkeypatch.setattr(bm25, "_BATCH", batch)
    monkeypatch.setattr(bm25, "_IN_MEMORY", 1 << 10)
    expected = by_definition(PASSAGES, query)
    order = [place for place in np.argsort(-expected, kind="stable") if expected[place] > 0]
    [found] = BM25Retriever(PASSAGES).retrieve([query], 500)
    assert len(found) == len(order)
    np.testing.assert_allclose([scored.score for scored in found], expected[order], rtol=1e-5)
    assert {scored.passage.id for scored in found} == {PASSAGES[place].id for place in order}


def test_the_index_is_the_one_that_bm25s_makes():
    theirs = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    theirs.index([words(f"{passage.title}\n{passage.text}") for passage in PASSAGES], show_progress=False)
    ours = bm25.build_postings(enumerate(PASSAGES, 1), len(PASSAGES))
    for word, number in ours.vocabulary.items():
        other = theirs.vocab_dict[word]
        span = slice(ours.starts[number], ours.starts[number + 1])
        their_span = slice(theirs.scores["indptr"][other], theirs.scores["indptr"][other + 1])
        assert ours.passages[span].tolist() == theirs.scores["indices"][their_span].tolist()
        np.testing.assert_allclose(ours.weights[span], theirs.scores["data"][their_span], rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9000), st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from([3, 1000]))
def test_the_best_are_the_best_whatever_the_blocks(count, depth, seed, levels):
    scores = (np.random.default_rng(seed).integers(0, levels, count) / 7).astype(np.float32)
    positive = [place for place in np.argsort(-scores, kind="stable") if scores[place] > 0]
    assert bm25._best(scores, depth).tolist() == positive[:depth]


def test_memory_store_and_datastore_agree(store):
    expected = BM25Retriever(PASSAGES).retrieve(QUERIES, 20)
    assert BM25Retriever(Datastore(PASSAGES)).retrieve(QUERIES, 20) == expected
    assert BM25Retriever(store).retrieve(QUERIES, 20) == expected
    assert BM25Retriever(store).retrieve(QUERIES, 20) == expected  # now from disk


def test_an_index_on_disk_is_used_until_the_passages_change(store):
    seen = []
    BM25Retriever(store, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(500, 500)]
    BM25Retriever(store, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 1
    store.add([Passage("new", "zebra")])
    assert ids(BM25Retriever(store).retrieve(["zebra"], 3)) == [["new"]]


def test_a_damaged_index_is_made_again(store):
    BM25Retriever(store)
    [weights] = store.index_dir("bm25").glob("data-*/weights.npy")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 0xFF
    weights.write_bytes(data)
    assert BM25Retriever(store).retrieve(QUERIES, 20) == BM25Retriever(PASSAGES).retrieve(QUERIES, 20)


def test_a_removed_passage_is_no_longer_found_by_an_open_retriever(store):
    retriever = BM25Retriever(store)
    before = ids(retriever.retrieve(["w17"], 5))[0]
    store.remove(before[1:2])
    assert ids(retriever.retrieve(["w17"], 5))[0] == [before[0], *before[2:]]


def test_only_allowed_passages_are_found_however_few(store):
    def keep(passage):
        return passage.id in {"p7", "p8"}

    for source in (PASSAGES, store):
        found = BM25Retriever(source, keep=keep).retrieve(["w0 w1 w2 w3 w4 w5 w6"], 5)[0]
        assert {scored.passage.id for scored in found} == {"p7", "p8"}
        assert found == [
            scored
            for scored in BM25Retriever(source).retrieve(["w0 w1 w2 w3 w4 w5 w6"], 500)[0]
            if keep(scored.passage)
        ]


def test_an_empty_store_finds_nothing(tmp_path):
    with PassageStore.create(tmp_path / "empty") as empty:
        assert BM25Retriever(empty).retrieve(["x"], 3) == [[]]
        assert BM25Retriever(empty).retrieve(["x"], 3) == [[]]


def test_a_full_disk_is_an_error_that_names_the_folder(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bm25.os, "posix_fallocate", full)
    with pytest.raises(DatastoreError, match=r"indexes.bm25.*No space left"):
        BM25Retriever(store)
    monkeypatch.undo()
    assert ids(BM25Retriever(store).retrieve(["w17"], 1)) == ids(BM25Retriever(PASSAGES).retrieve(["w17"], 1))


def test_words_are_found_inside_text_without_spaces():
    told = [Passage("tower", "東京の塔は1958年に建てられた。"), Passage("hill", "富士山は日本の山である。")]
    found = BM25Retriever(told).retrieve(["富士山の高さ", "塔 1958"], top_k=2)
    assert ids(found) == [["hill"], ["tower"]]
