"""The hash ring: keys stay where they are when somebody leaves, and nobody gets more than their bound."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.server.router.ring import HashRing

NAMES = st.lists(st.text("abc012", min_size=1, max_size=4), min_size=2, max_size=8, unique=True)
KEYS = st.lists(st.text(max_size=8), min_size=1, max_size=30)


@settings(deadline=None, max_examples=40)
@given(NAMES, KEYS, st.data())
def test_only_the_keys_of_who_leaves_move(names: list[str], keys: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(names))
    ring, rest = HashRing(names, 16), HashRing([name for name in names if name != gone], 16)
    loads = dict.fromkeys(names, 0)
    left = {name: load for name, load in loads.items() if name != gone}
    for key in keys:
        before, after = ring.choose(key, loads), rest.choose(key, left)
        assert ring.choose(key, left) == after, "left out or not on the ring: all the same"
        assert after == before or before == gone


@settings(deadline=None, max_examples=40)
@given(NAMES, st.lists(st.tuples(st.sampled_from("xyz"), st.booleans()), max_size=60), st.floats(1.0, 2.0))
def test_nobody_gets_more_than_the_bound(names: list[str], steps: list[tuple[str, bool]], factor: float) -> None:
    ring = HashRing(names, 16)
    loads = dict.fromkeys(names, 0)
    for key, ends in steps:
        chosen = ring.choose(key, loads, factor)
        loads[chosen] += 1
        assert loads[chosen] <= math.ceil(factor * sum(loads.values()) / len(names))
        if ends:
            loads[chosen] -= 1


@given(NAMES, st.text(max_size=8))
def test_a_walk_meets_everybody_once_and_begins_with_the_owner(names: list[str], key: str) -> None:
    ring = HashRing(names, 4)
    walk = list(ring.walk(key))
    assert sorted(walk) == sorted(names)
    assert ring.choose(key, dict.fromkeys(names, 0)) == walk[0]


def test_places_are_the_same_in_every_process_and_keys_spread() -> None:
    ring = HashRing(["0", "1", "2", "3"])
    owners = [next(ring.walk(str(key))) for key in range(4000)]
    counts = [owners.count(name) for name in "0123"]
    assert min(counts) > 700, counts
    assert "".join(owners[:12]) == "310220311311"
