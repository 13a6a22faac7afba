"""Reviews: what is urgent, and what fits the budget."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory
from ewe.longterm.reviews import ReviewPolicy

DAY = 86400.0
NOW = 1000 * DAY
POLICY = ReviewPolicy()
shares = st.floats(0, 1)
days = st.floats(0, 900)


def remembered(name, veracity, age_days, recalls):
    at = NOW - age_days * DAY
    return Memory(name, "x", veracity=veracity, created_at=at, updated_at=at, recall_count=recalls)


def test_priority_by_hand():
    assert POLICY.priority(remembered("a", 0.4, 30, 5), NOW) == pytest.approx(0.5 * (1 + 0.6 + 0.5) / 3)
    assert POLICY.priority(remembered("a", 0.0, 0, 100), NOW) == 0.0


@given(veracity=shares, age=days, recalls=st.integers(0, 100), lower=shares, more=days, used=st.integers(0, 9))
def test_older_lower_and_more_used_is_more_urgent(veracity, age, recalls, lower, more, used):
    base = POLICY.priority(remembered("a", veracity, age, recalls), NOW)
    assert 0 <= base <= 1
    assert POLICY.priority(remembered("a", veracity * lower, age, recalls), NOW) >= base - 1e-12
    assert POLICY.priority(remembered("a", veracity, age + more, recalls), NOW) >= base - 1e-9
    assert POLICY.priority(remembered("a", veracity, age, recalls + used), NOW) >= base - 1e-12


rows = st.lists(st.tuples(shares, days, st.integers(0, 50)), max_size=12)


@given(rows=rows, budget=st.integers(0, 12), seed=st.randoms())
def test_a_plan_takes_the_most_urgent_within_the_budget_in_any_order(rows, budget, seed):
    memories = [remembered(str(place), *row) for place, row in enumerate(rows)]
    plan = POLICY.plan(memories, NOW, budget)
    seed.shuffle(memories)
    assert POLICY.plan(iter(memories), NOW, budget) == plan
    assert len(plan) <= budget
    urgent = sorted((POLICY.priority(memory, NOW) for memory in memories), reverse=True)
    assert [POLICY.priority(memory, NOW) for memory in plan] == [one for one in urgent[:budget] if one >= POLICY.least]


def test_what_was_just_checked_and_a_negative_budget():
    assert POLICY.plan([remembered("a", 0.0, 1, 50)], NOW, 5) == []
    with pytest.raises(InvalidRequestError):
        POLICY.plan([], NOW, -1)


@given(veracity=shares, age=days, recalls=st.integers(0, 100), least=st.floats(0.01, 0.9))
def test_a_memory_is_due_from_the_time_that_is_told_for_it(veracity, age, recalls, least):
    policy, memory = ReviewPolicy(least=least), remembered("a", veracity, age, recalls)
    due_at = policy.due_at(memory)
    if due_at == math.inf:
        assert policy.priority(memory, NOW + 1e9 * DAY) <= least
    else:
        assert policy.priority(memory, due_at) == pytest.approx(least)
        assert policy.plan([memory], due_at + DAY, 1) == [memory]
        assert policy.plan([memory], due_at - DAY, 1) == []
