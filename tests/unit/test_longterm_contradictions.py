"""What a new text says of the memories that are there."""

import numpy as np
import pytest

from ewe.errors import JudgeError
from ewe.longterm.records import Memory
from ewe.longterm.scoring.contradictions import agreeing, contradicted, relations


class Table:
    """A judge that looks its rows up by (evidence, claim); everything else is inconclusive."""

    def __init__(self, rows):
        self.rows = rows
        self.calls = []

    def judge(self, pairs):
        self.calls.append(list(pairs))
        return np.array(
            [self.rows.get(tuple(text.split()[-1] for text in pair), (0, 0, 1)) for pair in pairs], dtype=np.float32
        ).reshape(-1, 3)


ONE, TWO, THREE = (Memory(name, f"the mill is {name}") for name in ("one", "two", "three"))
NEW = "the mill is new"


def test_both_directions_are_asked_at_once_and_the_stronger_contradiction_counts():
    judge = Table({("one", "new"): (0.1, 0.3, 0.6), ("new", "one"): (0.05, 0.9, 0.05), ("new", "two"): (0.8, 0.1, 0.1)})
    one, two = relations(NEW, [ONE, TWO], judge)
    assert len(judge.calls) == 1
    assert one.contradiction == pytest.approx(0.9)
    assert two.supported == pytest.approx(0.8)
    assert two.supports == 0.0
    assert one.judgement == pytest.approx((0.1, 0.9, 0.0), abs=1e-6)
    assert sum(two.judgement) == pytest.approx(1.0)


def test_what_contradicts_comes_surest_first_and_what_agrees_does_so_both_ways():
    judge = Table(
        {
            ("one", "new"): (0, 0.7, 0.3),
            ("two", "new"): (0, 0.95, 0.05),
            ("three", "new"): (0.9, 0, 0.1),
            ("new", "three"): (0.9, 0, 0.1),
        }
    )
    found = relations(NEW, [ONE, TWO, THREE], judge)
    assert contradicted(found) == [TWO, ONE]
    assert agreeing(found) == [THREE]
    only_there = relations(NEW, [THREE], Table({("three", "new"): (0.9, 0, 0.1)}))
    assert agreeing(only_there) == []


def test_nobody_there_and_a_judge_that_is_none():
    assert relations(NEW, [], Table({})) == []

    class Broken:
        def judge(self, pairs):
            return np.ones((1, 3))

    with pytest.raises(JudgeError):
        relations(NEW, [ONE], Broken())
