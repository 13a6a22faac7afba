"""What a newer statement changes about an older one: verbs and signs of change, and all that can hold side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.longterm_changes import read
from ewe.errors import InvalidRequestError
from ewe.longterm.change.change_reading import Stance, compare, compare_all
from ewe.longterm.recall import MemoryRules
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from tests.unit.longterm_parts import YearJudge, new_store

ANN, ME = Scope("ann"), MemorySource("user", "ann", 0.7)
PORTO, BERGEN = "I live in Porto.", "I moved to Bergen in spring."
DAY = 86400.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        yield opened


@pytest.fixture
def memories(store: MemoryStore) -> MemoryService:
    return MemoryService(store, clock=lambda: DAY)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Porto.", "I moved to Bergen in spring."),
        ("I work for a small bakery.", "I quit the bakery and work for Siemens now."),
        ("My boyfriend Milo is a baker.", "Milo and I broke up."),
        ("We have no pets.", "The new puppy chewed my shoes."),
        ("Choir practice is on Mondays.", "Choir practice moved to Thursdays."),
        ("I live in Berlin", "I live in Paris"),
        ("The office opens at nine.", "The office opens at ten."),
    ],
)
def test_a_newer_statement_takes_the_place_of_an_older_one(older: str, newer: str) -> None:
    assert compare(older, newer) is Stance.CHANGED


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I prefer tea in the morning.", "I prefer wine in the evening."),
        ("My work number is 0170 555 123.", "My private number is 0170 555 987."),
        ("I live in Porto.", "My sister moved to Bergen."),
        ("I work at Siemens.", "My brother quit Siemens."),
        ("I speak Danish.", "I'm learning Dutch."),
        ("My bank is ING.", "I walked along the river bank."),
    ],
)
def test_both_can_hold(older: str, newer: str) -> None:
    assert compare(older, newer) is Stance.APART


def test_few_of_the_written_pairs_that_both_hold_are_withdrawn_and_most_changes_are_noticed() -> None:
    pairs = read()["report"]
    stances = compare_all([(pair.older, pair.newer) for pair in pairs])
    together = [stance for pair, stance in zip(pairs, stances, strict=True) if pair.kind == "compatible"]
    changes = [stance for pair, stance in zip(pairs, stances, strict=True) if pair.kind.startswith("changed")]
    assert together.count(Stance.CHANGED) <= 0.05 * len(together)
    assert changes.count(Stance.CHANGED) >= 0.6 * len(changes)


def test_the_same_words_are_said_again_and_long_texts_are_not_read() -> None:
    long = f"{PORTO} {'It was built long ago and has many rooms with old floors. ' * 5}"
    assert compare_all([(PORTO, PORTO), (long, BERGEN)]) == [Stance.AGAIN, Stance.APART]


def test_no_model_is_loaded_for_nothing() -> None:
    assert compare_all([]) == []


def test_what_was_superseded_is_listed_explained_and_restored(memories: MemoryService) -> None:
    old = memories.add(PORTO, ANN, ME)
    new = memories.add(BERGEN, ANN, ME, valid_from=2 * DAY)
    [gone] = memories.superseded(ANN)
    assert gone == memories.why(ANN, old.id).ended
    assert (gone.memory.id, gone.by) == (old.id, memories.store.get(ANN, new.id))
    assert gone.text == f"held until 1970-01-03: {BERGEN}"
    assert memories.why(ANN, new.id).ended is None
    assert memories.why(ANN, new.id).supersedes == (memories.store.get(ANN, old.id),)
    assert new.supersedes == (old.id,)
    again = memories.restore(ANN, old.id, by="ann")
    assert (again.content, again.valid_until) == (PORTO, None)
    assert memories.superseded(ANN) == []
    assert [one.reason for one in memories.store.history(ANN, old.id)] == ["added", "superseded", "restored"]
    with pytest.raises(InvalidRequestError, match="holds as it is"):
        memories.restore(ANN, old.id)


def test_a_mark_of_contradiction_is_taken_away(store: MemoryStore) -> None:
    memories = MemoryService(store, judge=YearJudge(), clock=lambda: DAY)
    old = memories.add("The old mill as we know opened in 1874", ANN, ME)
    memories.add("In 1784 the old mill opened, says Ann", ANN, MemorySource("user", "bob", 0.5))
    if memories.store.get(ANN, old.id).contradicts:
        assert memories.restore(ANN, old.id).contradicts == ()


def test_the_one_that_took_its_place_may_be_gone(memories: MemoryService) -> None:
    old, new = memories.add(PORTO, ANN, ME), memories.add(BERGEN, ANN, ME)
    memories.store.delete(ANN, [new.id], at=DAY, reason="asked for")
    gone = memories.why(ANN, old.id).ended
    assert gone is not None
    assert gone.by is None
    assert gone.text.endswith("by a memory that was deleted since")


def test_what_is_said_again_is_kept_once_with_its_new_words_in_the_history(memories: MemoryService) -> None:
    old = memories.add("I work at Ikea.", ANN, ME)
    assert memories.add("I am employed at Ikea.", ANN, ME).id == old.id
    last = memories.store.history(ANN, old.id)[-1]
    assert (last.reason, last.evidence) == ("said again", ("I am employed at Ikea.",))
    assert memories.knows(Memory("new", "I'm employed at Ikea.", scope=ANN))


def test_another_number_is_not_the_same_again(memories: MemoryService) -> None:
    old = memories.add("My phone number is 0170 555 123.", ANN, ME)
    new = "My phone number is 0170 555 987."
    assert not memories.knows(Memory("new", new, scope=ANN))
    assert memories.add(new, ANN, ME).id != old.id


def test_turns_of_a_conversation_all_stay_and_no_judge_is_asked_about_them(store: MemoryStore) -> None:
    class Silent(YearJudge):
        def judge(self, pairs):  # type: ignore[no-untyped-def]
            raise AssertionError("no judge is asked about turns")

    memories = MemoryService(store, judge=Silent(), rules=MemoryRules(judge_turns=False))
    memories.add("I work at Ikea.", ANN, ME, "turn")
    memories.add("I am employed at Ikea.", ANN, ME, "turn")
    assert len(list(store.scan([ANN]))) == 2


def test_changes_are_read_without_the_judge(store: MemoryStore) -> None:
    class Silent(YearJudge):
        def judge(self, pairs):  # type: ignore[no-untyped-def]
            raise AssertionError("no judge is asked about what users say")

    memories = MemoryService(store, judge=Silent(), rules=MemoryRules(judge_turns=False))
    memories.add(PORTO, ANN, ME)
    memories.add(BERGEN, ANN, ME)
    assert [gone.memory.content for gone in memories.superseded(ANN)] == [PORTO]


def test_a_history_of_changes_can_be_told_in_any_order(memories: MemoryService) -> None:
    new = memories.add("I moved to Bergen.", ANN, ME, observed_at=3 * DAY)
    first = memories.add("I live in Porto.", ANN, ME, observed_at=1 * DAY)
    between = memories.add("I live in Rome now.", ANN, ME, observed_at=2 * DAY)
    ends = {one.id: (one.valid_from, one.valid_until) for one in memories.store.scan([ANN])}
    assert ends == {first.id: (None, 2 * DAY), between.id: (2 * DAY, 3 * DAY), new.id: (3 * DAY, None)}
    assert between.supersedes == (first.id,)


def test_an_older_statement_is_found_among_many(memories: MemoryService) -> None:
    memories.add(PORTO, ANN, ME)
    for number in range(60):
        memories.add(f"The curtains of shop {number} came today, they said.", ANN, ME)
    memories.add(BERGEN, ANN, ME)
    assert [gone.memory.content for gone in memories.superseded(ANN)] == [PORTO]


def test_nobody_else_s_word_ends_what_somebody_says_of_himself(memories: MemoryService) -> None:
    memories.add(PORTO, ANN, ME)
    memories.add(BERGEN, ANN, MemorySource("user", "bob", 0.9))
    memories.add(BERGEN, Scope("bob"), ME)
    assert memories.superseded(ANN) == []


def test_a_long_text_is_never_superseded(memories: MemoryService) -> None:
    long = " ".join([PORTO, *("It was built long ago and has many rooms with old floors." for _ in range(4))])
    assert isinstance(memories.add(long, ANN, ME), Memory)
    memories.add(BERGEN, ANN, ME)
    assert memories.superseded(ANN) == []


def test_of_turns_only_those_that_tell_a_fact_are_compared(memories: MemoryService) -> None:
    told = memories.add("I live in Porto.", ANN, ME, "turn")
    memories.add("Wow, congrats on the move, Ben!", ANN, ME, "turn")
    assert memories.superseded(ANN) == []
    memories.add("I moved to Bergen.", ANN, ME, "turn")
    assert [one.memory.id for one in memories.superseded(ANN)] == [told.id]
