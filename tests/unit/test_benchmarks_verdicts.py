"""The rules by which the benchmark of verdicts makes its sentences, and its intervals."""

from random import Random

import pytest

from benchmarks.verdicts import shares
from benchmarks.verdicts_changes import CHANGES, GROUPS, Source, changed, source_of
from benchmarks.verdicts_edits import EDITS, edited

SENTENCE = (
    "In 1931 the third English company of Ada Lind, which may be the largest, was founded by Bo Berg, Cy Dale and "
    "others including three weavers, before most of the wool from Oslo rose to 250 pounds on 8 March."
)


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_a_change_is_another_sentence_and_the_same_every_time(kind: str) -> None:
    source = Source(("Eva Holm", "Gus Ibsen"), ("1799",))
    text = SENTENCE if kind != "negation dropped" else SENTENCE.replace("may be", "was not")
    text = text if kind != "subject" else "Ada Lind was a weaver in Oslo."
    first, again = (changed(kind, text, source, Random(1)) for _ in range(2))
    assert first == again
    assert first not in (None, text)


def test_a_rule_that_finds_nothing_gives_none() -> None:
    assert [changed(kind, "Wool keeps people warm.", Source(), Random(1)) for kind in CHANGES] == [None] * len(CHANGES)
    assert [edited(kind, "Wool keeps people warm.") for kind in EDITS] == [None] * len(EDITS)


def test_at_least_twelve_kinds_and_groups_of_them() -> None:
    assert len(CHANGES) >= 12
    assert {kind for kinds in GROUPS.values() for kind in kinds} <= CHANGES.keys()


def test_names_and_years_are_borrowed_from_the_article() -> None:
    assert source_of(["The wool of Ada Lind was sold in May 1931."]) == Source(("Ada Lind",), ("1931",))


def test_edits_keep_what_is_said() -> None:
    assert edited("numerals", "The 1,200 weavers had three mills there.") == "The 1200 weavers had 3 mills there."
    assert edited("moved", "In the year 1931, the mill was sold again.") == "The mill was sold again in the year 1931."
    assert edited("shortened", "The mill (a ruin) was sold again.") == "The mill was sold again."


def test_intervals_are_wilsons() -> None:
    found = shares("x", 9, 10)
    assert found == {"x": 0.9, "x, from": 0.596, "x, to": 0.982, "x, of": 10}
    assert shares("x", 0, 0) == {}
