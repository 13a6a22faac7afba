import json
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.errors import DatastoreError
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.datastore import Datastore
from ewe.text.words import words
from ewe.types import Passage
from ewe.types.protocols import Retriever

PASSAGES = [
    Passage("a", "She was born in 1867 in Warsaw.", title="Marie Curie"),
    Passage("b", "He was born in 1879 in Ulm.", title="Albert Einstein"),
    Passage("c", "The city has 1,860,281 inhabitants.", title="Warsaw"),
    Passage("d", "Karel Čapek wrote R.U.R. in 1920.", title="Robots"),
]


def ids(results):
    return [[scored.passage.id for scored in row] for row in results]


def test_words_keep_numbers_and_names_whole():
    assert words("Čapek's 1,904 books cost 3.5, in co-op’s 2nd ﬁle; O’Neill") == [
        "capek", "1904", "books", "cost", "3.5", "in", "co", "op", "2nd", "file", "o'neill",
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.text("ab1290.,'-_ \n", max_size=30) | st.text(st.characters(codec="ascii"), max_size=30))
def test_words_of_plain_text_are_those_beside_other_letters(text):
    assert [*words(text), "ø"] == words(f"{text} ø")


def test_title_and_text_are_both_searched_in_a_batch():
    retriever = BM25Retriever(PASSAGES)
    assert isinstance(retriever, Retriever)
    assert ids(retriever.retrieve(["Where was Einstein born?", "inhabitants of Warsaw", "capek 1920"], 2)) == [
        ["b", "a"], ["c", "a"], ["d", "c"][:1],
    ]  # fmt: skip


def test_only_passages_that_share_a_word_are_returned():
    retriever = BM25Retriever(PASSAGES)
    assert ids(retriever.retrieve(["zebra", "", "1860281", "?!"], 4)) == [[], [], ["c"], []]
    assert all(scored.score > 0 for scored in retriever.retrieve(["born Warsaw"], 4)[0])


def test_ties_keep_the_given_order_at_every_depth():
    retriever = BM25Retriever([Passage(str(i), "same words") for i in range(9)])
    full = ids(retriever.retrieve(["words"], 9))[0]
    assert full == [str(i) for i in range(9)]
    for depth in range(1, 9):
        assert ids(retriever.retrieve(["words"], depth))[0] == full[:depth]


def test_a_repeated_query_word_counts_once():
    retriever = BM25Retriever(PASSAGES)
    assert retriever.retrieve(["born Warsaw"], 4) == retriever.retrieve(["born born Warsaw born"], 4)


def test_empty_collections_find_nothing_and_depth_must_be_positive():
    assert BM25Retriever([]).retrieve(["x"], 3) == [[]]
    assert BM25Retriever([Passage("e", "", title="")]).retrieve(["x"], 3) == [[]]
    with pytest.raises(ValueError, match="top_k"):
        BM25Retriever(PASSAGES).retrieve(["x"], 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=40), st.integers(1, 6))
def test_odd_texts_never_raise(texts, query, depth):
    passages = [Passage(str(i), text) for i, text in enumerate(texts)]
    results = BM25Retriever(passages).retrieve([query, *texts], depth)
    assert all(len(row) <= depth for row in results)


def test_a_datastore_is_read_as_it_was_written(tmp_path):
    passages = (Passage("a", "Čapek\u2028 wrote\nit", "T", "s", "u", "1920", 0.25), Passage("b", "two"))
    lines = [json.dumps(asdict(passage), ensure_ascii=False) for passage in passages]
    (tmp_path / "store.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert Datastore.from_jsonl(tmp_path / "store.jsonl").passages == passages


def test_further_keys_become_metadata(tmp_path):
    line = {"id": "a", "text": "x", "section": "Results", "page": 3, "metadata": {"tags": ["new", "long"]}}
    (tmp_path / "store.jsonl").write_text(json.dumps(line))
    [passage] = Datastore.from_jsonl(tmp_path / "store.jsonl").passages
    assert passage.metadata == {"section": "Results", "page": 3, "tags": ["new", "long"]}


def test_copies_are_kept_once_and_clashing_ids_refused():
    first = Passage("a", "text", source="s")
    copy = Passage("b", "text", source="s")
    other_source = Passage("c", "text", source="t")
    assert Datastore([first, copy, first, other_source]).passages == (first, other_source)
    with pytest.raises(DatastoreError, match="'a'"):
        Datastore([first, Passage("a", "other")])


GOOD = json.dumps({"id": "a", "text": "x"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON.*ewe index build"),
        ("[1]", "expected a JSON object"),
        ('{"id": "b"}', "missing text"),
        ('{"id": "b", "text": "x", "metadata": "Results"}', "metadata must be an object"),
        ('{"id": "b", "text": "x", "section": "\\ud800"}', "surrogate"),
        ('{"id": "b", "text": "x", "veracity": 1.5}', "veracity must lie"),
        ('{"id": "b", "text": "x", "veracity": NaN}', "veracity must lie"),
        ('{"id": "b", "text": "x", "veracity": true}', "veracity must be a number"),
        ('{"id": 7, "text": "x"}', "id must be a string"),
        ('{"id": "a", "text": "y"}', "already stands for the passage of line 1"),
        ("\udcff", "not UTF-8"),
        ('{"id": "b", "text": "\\ud800"}', "surrogate"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "store.jsonl"
    path.write_bytes(f"{GOOD}\n\n{line}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(DatastoreError, match=f"store.jsonl:3: .*{message}"):
        Datastore.from_jsonl(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(DatastoreError, match="nowhere"):
        Datastore.from_jsonl(tmp_path / "nowhere.jsonl")
