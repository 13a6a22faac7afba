"""What takes the place of what: subjects and attributes of short statements, and validity in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from longterm_parts import YearJudge

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.contradictions import can_both_hold, same_attribute
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change, MemoryStore
from tests.unit.longterm_parts import new_store

DAY = 86400.0
ANN = Scope("ann")
BERLIN, PARIS = "I live in Berlin", "I live in Paris"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += DAY
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        yield opened


@pytest.fixture
def memories(store: MemoryStore) -> MemoryService:
    return MemoryService(store, judge=YearJudge(), clock=Clock())


def person(name: str, reliability: float = 0.7) -> MemorySource:
    return MemorySource("user", name, reliability)


def found(memories: MemoryService, query: str, as_of: float | None = None, scope: Scope = ANN) -> set[str]:
    return {one.memory.content for one in memories.search(query, [scope], threshold=0.0, as_of=as_of).used}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (BERLIN, f"{PARIS}."),
        ("My favourite colour is blue.", "My favourite colour is dark green."),
        ("The office opens at nine.", "The office opens at ten."),
        ("I am vegetarian.", "I am not vegetarian any more."),
        ("I don't smoke.", "I smoke."),
        ("I have a car.", "I have no car."),
        ("We have no dog.", "We have a dog now."),
        ("I have two children.", "I have three children."),
        ("I use an iPhone.", "I use a Pixel now."),
        ("My blood type is A.", "My blood type is O."),
        ("My phone number is 0113 496 0001.", "My new phone number is 0113 496 0002."),
        ("Jo's new phone number is 555-0101.", "Jo's phone number is 555-0199."),
        ("My gate code is 4471.", "My gate code is 9912 now."),
        ("A fox hears a bell before a seal.", "A seal hears a bell before a fox."),
        ("Elms are older than oaks.", "Oaks are older than elms."),
    ],
)
def test_a_newer_value_of_one_attribute(older: str, newer: str) -> None:
    assert same_attribute(older, newer)
    assert not can_both_hold(older, newer)


def test_what_is_for_now_has_not_changed() -> None:
    assert not same_attribute("Sure thing, Nate! See you later!", "Sure thing! Bye for now!")


def test_a_comparison_in_another_order_is_the_same() -> None:
    assert not same_attribute("In May Ann ran faster than Bo.", "Ann ran faster than Bo in May.")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BERLIN, "My sister lives in Paris."),
        ("I have visited Rome.", "I have visited Oslo."),
        ("I like tea.", "I like coffee."),
        ("The office opens at nine.", "The office closes at five."),
        ("My favourite colour is blue.", "My favourite food is pasta."),
        ("I have a dog called Rex.", "I have a cat called Mimi."),
        ("I am vegetarian.", "The bridge opened in 1932."),
        ("Nora is allergic to peanuts.", "Nora is allergic to cats."),
        ("My car is red.", "My car is a Volvo."),
        ("Kim's favourite book is Emma.", "Kim's favourite film is Alien."),
        ("I am learning Spanish.", "I am learning to cook."),
        ("Ann moved to Lyon in 2019", "Ann moved to Lyon."),
        ("The office opens at nine.", "The office opens at nine on Mondays."),
    ],
)
def test_what_can_hold_beside_it(one: str, other: str) -> None:
    assert not same_attribute(one, other)
    assert can_both_hold(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paul is a teacher.", "Paul is a father."),
        ("The office opens at nine.", "The office opens at nine thirty."),
        ("Ann lives in Lyon.", "Ann lived in Lyon in 2019."),
        ("Ann moved to Lyon in 2019.", "Ann never moved to Lyon."),
        (BERLIN, "I live in Berlin, Germany"),
        (BERLIN, BERLIN),
        ("The bridge opened in 1932", "The bridge opened in 1923"),
        ("My work number is 555-0142.", "My home number is 555-0143."),
        ("My laptop is heavy.", "My laptop is light."),
        ("My phone number is 0113 496 0001.", "My phone number is private."),
        ("I hate mushrooms.", "Mushrooms are my favourite food."),
        ("The mayor of Ost is Ann Reed.", "No, the mayor of Ost is Joe Marsh."),
        ("Peter eats no meat.", "Peter eats a steak every Friday."),
        ("Nora is an only child.", "Nora has two sisters."),
        ("Tim is mostly into classical music.", "Tim is learning German now."),
        ("", "?"),
    ],
)
def test_other_pairs_are_left_to_the_judge(one: str, other: str) -> None:
    assert not same_attribute(one, other)
    assert not can_both_hold(one, other)


def test_a_superseded_fact_is_found_for_its_own_time_only(memories: MemoryService) -> None:
    old = memories.add(BERLIN, ANN, person("ann"))
    new = memories.add(PARIS, ANN, person("ann"))
    assert found(memories, "Where do I live?") == {PARIS}
    assert found(memories, "Where do I live?", as_of=old.created_at - 1) == {BERLIN}
    assert found(memories, "Where do I live?", as_of=new.created_at - 1) == {BERLIN}
    assert found(memories, "Where do I live?", as_of=new.created_at) == {PARIS}
    kept = memories.store.get(ANN, old.id)
    assert (kept.valid_until, new.valid_from, new.valid_until) == (new.created_at, new.created_at, None)
    assert (kept.contradicts, new.contradicts, kept.veracity) == ((), (), old.veracity)
    last = memories.store.history(ANN, old.id)[-1]
    assert (last.reason, last.evidence) == ("superseded", (new.id,))

    again = memories.add(BERLIN, ANN, person("ann"))
    assert again.id not in (old.id, new.id)
    assert found(memories, "Where do I live?") == {BERLIN}
    assert found(memories, "Where do I live?", as_of=new.created_at) == {PARIS}
    assert memories.add(BERLIN, ANN, person("ann")).id == again.id
    assert memories.store.verify() == []


def test_what_is_told_later_of_an_earlier_time_ends_where_the_next_began(memories: MemoryService) -> None:
    memories.add(PARIS, ANN, person("ann"), valid_from=100.0)
    memories.add("I live in Oslo", ANN, person("ann"), valid_from=50.0)
    assert found(memories, "Where do I live?") == {PARIS}
    assert found(memories, "Where do I live?", as_of=99.0) == {"I live in Oslo"}


@pytest.mark.parametrize(
    ("who", "reliability", "text", "wins"),
    [
        ("bob", 0.7, "The office opens at ten", True),
        ("bob", 0.6, "The office opens at ten", False),
        ("ann", 0.6, "The office opens at ten", True),
        ("bob", 0.9, PARIS, False),
    ],
)
def test_the_newer_of_equal_trust_wins(
    memories: MemoryService, who: str, reliability: float, text: str, wins: bool
) -> None:
    shared = Scope()
    for first in ("The office opens at nine", BERLIN):
        memories.add(first, shared, person("ann"))
    memories.add(text, shared, person(who, reliability))
    superseded = [memory for memory in memories.store.scan() if memory.valid_until is not None]
    assert bool(superseded) is wins


def test_nothing_outside_its_scope_is_superseded(memories: MemoryService) -> None:
    memories.add("The office opens at nine", Scope(), person("ann"))
    memories.add("The office opens at ten", ANN, person("ann"))
    assert all(memory.valid_until is None for memory in memories.store.scan())


def test_an_edit_keeps_what_was_said_before(memories: MemoryService) -> None:
    made = memories.add("The bridge opened in 1923", ANN, person("ann"))
    other = memories.add("The bridge opened in 1932", ANN, person("bob"))
    edited = memories.edit(ANN, made.id, Change(content="The bridge  opened in 1932", valid=(5.0, None)))
    assert (edited.id, edited.content, edited.valid_from) == (made.id, "The bridge opened in 1932", 5.0)
    assert edited.contradicts == ()
    last = memories.store.history(ANN, made.id)[-1]
    assert (last.reason, last.content_before) == ("edited", "The bridge opened in 1923")
    fresh = memories.add("The bridge opened in 1923", ANN, person("ann"))
    assert fresh.id != made.id
    assert set(fresh.contradicts) == {made.id, other.id}
    with pytest.raises(InvalidRequestError, match="valid_until"):
        memories.edit(ANN, made.id, Change(valid=(5.0, 4.0)))


def test_a_memory_holds_from_its_beginning_to_before_its_end() -> None:
    memory = Memory("x", "tea", valid_from=1.0, valid_until=2.0)
    assert [memory.holds_at(at) for at in (0.9, 1.0, 1.9, 2.0)] == [False, True, True, False]
