"""What sets a passage's veracity on the way in: the MMA paper, equations 1 to 5, against loops."""

import math
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_bench import FixedRetriever

from ewe.errors import ConfigError, DatastoreError
from ewe.retrieval.ingest import read_sources
from ewe.retrieval.veracity import ConfidenceScorer, SourceTable, Weighed, agreement, word_cosines
from ewe.types import Passage

TODAY = date(2025, 3, 1)
PASSAGES = [
    Passage("a", "The bridge opened in 1932.", source="book", date="2025-03-01", veracity=0.5),
    Passage("b", "The bridge opened in 1932.", source="web", date="2025-01-30"),
    Passage("c", "Penguins swim.", source="new", veracity=0.3),
]
TABLE = SourceTable({"book": 0.9, "web": 0.2})


def test_sources_that_are_not_listed_keep_their_own():
    assert TABLE.weigh(PASSAGES) == [0.9, 0.2, 0.3]
    assert SourceTable({"web": 0.2, "*": 0.6}).weigh(PASSAGES) == [0.6, 0.2, 0.6]


@pytest.mark.parametrize(
    ("written", "age"),
    [("2025-03-01", 0), ("2025-02-27T10:00:00", 2), ("2025-02", 28), ("2024", 425), ("2026-01-01", 0)],
)
def test_a_passage_halves_with_every_half_life(written, age):
    scorer = ConfidenceScorer(half_life_days=30.0, weights=(1.0, 1.0, 0.0), today=TODAY)
    [believed] = scorer.weigh([Passage("x", "x", date=written, veracity=0.0)])
    assert believed == pytest.approx(math.exp(-math.log(2) / 30 * age) / 2)


@pytest.mark.parametrize("written", ["", "May 2024", "2024-13-01", "20240501"])
def test_what_is_no_date_has_no_age(written):
    scorer = ConfidenceScorer(half_life_days=30.0, weights=(1.0, 1.0, 0.0), today=TODAY)
    assert scorer.weigh([Passage("x", "x", date=written, veracity=0.3)]) == [0.3]


def by_loops(cosines, confidences):
    """Equation 4 with the other passages as the neighbourhood and |cosine| as the weight."""
    result = []
    for i in range(len(confidences)):
        above = below = 0.0
        for j in range(len(confidences)):
            if i != j:
                above += abs(cosines[i][j]) * confidences[j] * cosines[i][j]
                below += abs(cosines[i][j])
        result.append(above / below if below else 0.0)
    return result


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_agreement_is_the_weighted_mean_of_the_neighbours(count, seed):
    random = np.random.default_rng(seed)
    cosines = np.clip(random.normal(0, 0.6, (count, count)), -1, 1).round(1)
    confidences = random.random(count)
    np.testing.assert_allclose(agreement(cosines, confidences), by_loops(cosines, confidences), atol=1e-12)


def test_confidence_is_the_mean_over_what_a_passage_has():
    scorer = ConfidenceScorer(TABLE, 30.0, (0.45, 0.40, 0.15), today=TODAY)
    base = [(0.45 * 0.9 + 0.40) / 0.85, (0.45 * 0.2 + 0.40 * 0.5) / 0.85, 0.3]
    support = by_loops(word_cosines([passage.text for passage in PASSAGES]), base)
    expected = [
        0.45 * 0.9 + 0.40 * 1.0 + 0.15 * support[0],
        0.45 * 0.2 + 0.40 * 0.5 + 0.15 * support[1],
        (0.45 * 0.3 + 0.15 * support[2]) / 0.60,
    ]
    assert scorer.weigh(PASSAGES) == pytest.approx(expected)
    assert scorer.weigh(PASSAGES[:1]) == pytest.approx(base[:1])
    assert scorer.weigh([]) == []


def test_confidence_stays_in_its_range():
    def opposed(texts):
        return -np.ones((len(texts), len(texts)))

    scorer = ConfidenceScorer(SourceTable({"*": 0.0}), weights=(0.1, 0.0, 0.9), similarity=opposed)
    assert scorer.weigh(PASSAGES) == [0.0, 0.0, 0.0]
    with pytest.raises(ConfigError, match="weights"):
        ConfidenceScorer(weights=(0.0, 1.0, 0.0))


def test_who_is_vouched_for_by_a_trusted_source_gains():
    alone, vouched = (
        ConfidenceScorer(SourceTable({"good": 1.0, "x": 0.5})).weigh(
            [Passage("1", "the bridge opened", source="x"), Passage("2", text, source="good")]
        )[0]
        for text in ("penguins swim", "the bridge opened")
    )
    assert alone < 0.5 < vouched


def test_word_cosines_are_cosines():
    found = word_cosines(["a b b", "b c", "", "z"])
    assert found[0, 1] == pytest.approx(2 / math.sqrt(5 * 2))
    assert found[2].tolist() == [0, 0, 0, 0]
    assert found[0, 3] == 0


def test_a_weighed_retriever_changes_the_veracity_only():
    plain = FixedRetriever(PASSAGES)
    [row] = Weighed(plain, TABLE).retrieve(["q"], 3)
    assert [scored.passage.veracity for scored in row] == [0.9, 0.2, 0.3]
    assert [(scored.passage.id, scored.score) for scored in row] == [("a", 3.0), ("b", 2.0), ("c", 1.0)]


def test_a_table_is_read_from_a_file(tmp_path):
    path = tmp_path / "sources.yaml"
    path.write_text("book: 0.9\nweb: 0.2\n")
    assert SourceTable(read_sources(path)) == TABLE
    path.write_text("book: 9\n")
    with pytest.raises(DatastoreError, match="book"):
        read_sources(path)
