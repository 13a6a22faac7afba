"""Reciprocal rank fusion, filters and reranking against their definitions."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_bench import FixedRetriever, ids

from ewe.config import Config, FilterConfig
from ewe.errors import ConfigError
from ewe.retrieval.hybrid import HybridRetriever, fuse
from ewe.retrieval.reranker import Reranked
from ewe.retrieval.source import passes
from ewe.types import Passage, ScoredPassage
from ewe.types.protocols import Retriever

RANKINGS = st.lists(st.lists(st.integers(0, 12), max_size=10, unique=True), min_size=1, max_size=4)


def ranking(numbers):
    return [ScoredPassage(Passage(str(number), "x"), 1.0) for number in numbers]


@examples(50, 200)
@given(RANKINGS, st.sampled_from([0.0, 1.0, 60.0]), st.data())
def test_fused_scores_are_sums_of_reciprocal_ranks(numbers, offset, data):
    weights = data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(numbers), max_size=len(numbers)))
    expected = {}
    for row, weight in zip(numbers, weights, strict=True):
        for place, number in enumerate(row):
            expected[str(number)] = expected.get(str(number), 0.0) + weight / (offset + place + 1)
    fused = fuse([ranking(row) for row in numbers], weights, offset)
    assert {scored.passage.id: pytest.approx(scored.score) for scored in fused} == expected
    assert [scored.score for scored in fused] == sorted((scored.score for scored in fused), reverse=True)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=10, unique=True), st.integers(1, 4))
def test_retrievers_that_agree_keep_their_order(numbers, copies):
    assert [scored.passage.id for scored in fuse([ranking(numbers)] * copies, [1.0] * copies)] == list(
        map(str, numbers)
    )


def test_equal_scores_go_by_the_first_retriever():
    assert [scored.passage.id for scored in fuse([ranking([1, 2]), ranking([2, 1])], [1, 1])] == ["1", "2"]
    assert [scored.passage.id for scored in fuse([ranking([1]), ranking([2])], [1, 1])] == ["1", "2"]


def test_a_hybrid_looks_deeper_than_it_is_asked_to():
    passages = [Passage(str(number), "x") for number in range(30)]
    first, second = FixedRetriever(passages), FixedRetriever(passages[10:] + passages[:10])
    hybrid = HybridRetriever([first, second], depth=30)
    assert isinstance(hybrid, Retriever)
    assert len(hybrid.retrieve(["a", "b"], 3)[1]) == 3
    assert first.depths == second.depths == [30]
    hybrid.retrieve(["a"], 40)
    assert first.depths[-1] == 40
    with pytest.raises(ValueError, match="top_k"):
        hybrid.retrieve(["a"], 0)


@pytest.mark.parametrize(("retrievers", "weights"), [(0, None), (1, [1, 1]), (2, [1, 0])])
def test_a_hybrid_without_sense_is_refused(retrievers, weights):
    with pytest.raises(ConfigError, match="hybrid"):
        HybridRetriever([FixedRetriever([])] * retrievers, weights)


PASSAGES = [
    Passage("a", "x", source="web", url="https://a.org/1", date="2024-05-31", veracity=0.9, metadata={"n": [1, "x"]}),
    Passage("b", "x", source="book", url="https://b.org/1", date="2023", veracity=0.4),
    Passage("c", "x", source="web", url="http://a.org/2", date="in May", veracity=0.7, metadata={"n": 2, "ok": True}),
    Passage("d", "x", source="", date="2024-06-01T10:00", veracity=1.0),
]


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        ({}, "abcd"),
        ({"sources": ("web",)}, "ac"),
        ({"without": ("web",)}, "bd"),
        ({"since": "2024"}, "ad"),
        ({"since": "2024-06"}, "d"),
        ({"until": "2024-05"}, "ab"),
        ({"since": "2023-07-01", "until": "2024-05-31"}, "ab"),
        ({"since": "2024-06-02"}, ""),
        ({"url_prefix": "https://"}, "ab"),
        ({"min_veracity": 0.7}, "acd"),
        ({"sources": ("web",), "min_veracity": 0.8}, "a"),
        ({"where": {"n": 1}}, "a"),
        ({"where": {"n": ["x", 2]}}, "ac"),
        ({"where": {"n": ["1", "2"], "ok": True}}, "c"),
        ({"where": {"m": "1"}}, ""),
    ],
)
def test_a_filter_keeps_what_meets_every_condition(conditions, kept):
    assert "".join(passage.id for passage in PASSAGES if passes(FilterConfig(**conditions), passage)) == kept


@pytest.mark.parametrize(
    "conditions", [{"since": "May 2024"}, {"until": "2024-5"}, {"min_veracity": 1.5}, {"where": {"n": {}}}]
)
def test_a_filter_without_sense_is_refused(conditions):
    with pytest.raises(ConfigError, match=next(iter(conditions))):
        Config.from_mapping({"retrieval": {"filters": conditions}})


class LengthScorer:
    name = "models/length"

    def score(self, pairs):
        return np.array([len(passage) for _, passage in pairs], dtype=np.float32)


def test_a_reranker_orders_the_first_passages_by_its_own_scores():
    passages = [Passage(name, text) for name, text in (("a", "xx"), ("b", "xxxx"), ("c", "xxx"), ("d", "x" * 9))]
    reranked = Reranked(FixedRetriever(passages), LengthScorer(), depth=3)
    [row, again] = reranked.retrieve(["q", "r"], 2)
    assert [(scored.passage.id, scored.score) for scored in row] == [("b", 4.0), ("c", 3.0)]
    assert again == row
    assert ids(reranked.retrieve(["q"], 4)) == [["d", "b", "c", "a"]]
    assert reranked.description.endswith("reranked by length")
