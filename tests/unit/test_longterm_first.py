"""The first veracity of a memory: who of the neighbours has a say, and what contradicts it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.longterm.records import Memory, MemorySource
from ewe.longterm.scoring.contradictions import Relation
from ewe.longterm.scoring.forms import FirstVeracity
from ewe.longterm.scoring.verimem import InitialWeights

AS_WRITTEN = FirstVeracity(contradictions=True)


def told(who="ann", reliability=0.7):
    return Memory(who, "It opened in 1932", source=MemorySource("user", who, reliability))


def neighbour(who, supports, contradiction, veracity=0.8):
    memory = Memory(f"of {who}", "It opened long ago", source=MemorySource("user", who), veracity=veracity)
    return Relation(memory, supports, supports, contradiction)


def test_agreement_raises_it_and_a_contradiction_is_left_to_the_reader():
    new = told()
    assert FirstVeracity()(new, []) == pytest.approx((0.7, 0.6))
    assert FirstVeracity()(new, [neighbour("bob", 0.9, 0.0)])[0] > 0.7
    against = [neighbour("bob", 0.0, 0.9)]
    assert FirstVeracity()(new, against)[0] == 0.7
    assert FirstVeracity()(new, [*against, neighbour("eve", 0.9, 0.0)])[1] > 0.6  # who is contradicted is less sure
    torn = neighbour("bob", 0.81, 0.78)  # entails it, and is ruled out by it
    assert FirstVeracity()(new, [torn])[0] == 0.7
    assert AS_WRITTEN(new, against)[0] == pytest.approx((0.5 * 0.7 + 0.2 * 0.05) / 0.7)


def test_one_voice_per_source_and_none_for_the_same_one_or_the_distrusted():
    new = told("ann", 0.5)
    against = neighbour("cid", 0.0, 0.9)
    once = AS_WRITTEN(new, [neighbour("bob", 0.9, 0.0), against])
    assert AS_WRITTEN(new, [*(neighbour("bob", 0.9, 0.0) for _ in range(20)), against]) == once
    assert FirstVeracity()(new, [neighbour("ann", 0.9, 0.0), neighbour("eve", 0.9, 0.0, veracity=0.5)])[0] == 0.5


def test_the_weights_are_those_of_the_paper():
    rows = [neighbour("bob", 1.0, 0.0)]
    assert FirstVeracity(InitialWeights(1.0, 0.0, 0.0))(told(), rows)[0] == pytest.approx(0.7)
    assert FirstVeracity(InitialWeights(0.0, 0.0, 1.0))(told(), rows)[0] == pytest.approx(1.0)


relations = st.lists(
    st.tuples(st.sampled_from("abcd"), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).map(
        lambda row: neighbour(row[0], min(row[1], 1 - row[2]), row[2], row[3])
    ),
    max_size=6,
)


@given(found=relations, reliability=st.floats(0, 1), more=st.floats(0, 1), first=st.sampled_from([False, True]))
def test_it_lies_in_0_1_and_rises_with_its_source(found, reliability, more, first):
    score = FirstVeracity(contradictions=first)
    veracity, uncertainty = score(told("z", reliability), found)
    assert 0 <= veracity <= 1
    assert 0 <= uncertainty <= 1
    assert score(told("z", max(reliability, more)), found)[0] >= veracity - 1e-12


@given(found=relations, seed=st.randoms())
def test_the_order_of_neighbours_does_not_matter_where_each_voice_speaks_once(found, seed):
    once = list({one.memory.source.id: one for one in found}.values())
    expected = AS_WRITTEN(told("z"), once)
    seed.shuffle(once)
    assert AS_WRITTEN(told("z"), once) == pytest.approx(expected)
