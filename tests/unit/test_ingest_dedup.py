"""Duplicates: what counts as one, and that it is found across runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.retrieval.ingest.dedup import Deduplicator, are_similar, exact_key, near_keys
from ewe.retrieval.ingest.work import Prepared
from ewe.retrieval.store import PassageStore
from ewe.types import Passage

WORDS = "the river rises in hills north of town and flows past two old mills before it meets the sea near a small port"
LONG = " ".join(
    f"{opening} river rises in the hills and flows past {town} before it meets the sea."
    for opening, town in zip(["The", "This"] * 3, ["Ulm", "Bern", "Oslo", "Lyon", "Turin", "Ghent"], strict=True)
)


def prepared(name: str, text: str, title: str = "River", near: bool = True) -> Prepared:
    keys = (exact_key(title, text), *(near_keys(title, text) if near else ()))
    return Prepared(Passage(name, text, title=title), keys)


def meet(one: str, other: str) -> bool:
    return bool(set(near_keys("t", one)) & set(near_keys("t", other))) and are_similar(one, other)


def test_a_small_change_of_wording_is_a_near_duplicate() -> None:
    changed = LONG.replace("rises in the hills", "springs in the hills", 1)
    assert changed != LONG
    assert meet(LONG, changed)
    assert not are_similar(LONG, LONG[: len(LONG) // 2])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Bern", "Rome"),
        ("rises in the hills", "never rises in the hills"),
        ("flows past", "doesn't flow past"),
        ("the sea.", "the sea 3 times."),
    ],
)
def test_a_name_a_number_or_a_denial_makes_the_difference(old: str, new: str) -> None:
    changed = LONG.replace(old, new, 1)
    assert changed != LONG
    assert not set(near_keys("t", LONG)) & set(near_keys("t", changed))


@pytest.mark.parametrize(("one", "other"), [("-5", "5"), ("$5", "€5"), ("5%", "5"), ("1.5", "15"), ("> 5", "< 5")])
def test_signs_of_numbers_make_the_difference(one: str, other: str) -> None:
    first, second = (f"{LONG} It fell by {value} at dawn." for value in (one, other))
    assert exact_key("t", first) != exact_key("t", second)
    if " " not in one:
        assert not set(near_keys("t", first)) & set(near_keys("t", second))


@given(number=st.integers(0, 10**6), other=st.integers(0, 10**6), place=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_passages_with_different_numbers_never_meet(number: int, other: int, place: int) -> None:
    def with_number(value: int) -> str:
        words = WORDS.split()
        return " ".join([*words[:place], str(value), *words[place:]])

    keys, others = set(near_keys("t", with_number(number))), set(near_keys("t", with_number(other)))
    assert bool(keys & others) == (number == other)


def test_the_title_belongs_to_the_passage() -> None:
    assert exact_key("Ulm", "It was founded in 850.") != exact_key("Bern", "It was founded in 850.")
    assert not set(near_keys("Ulm", LONG)) & set(near_keys("Bern", LONG))


def test_keys_stay_what_they_are_on_disk() -> None:
    assert (
        exact_key("Ulm", "It was  FOUNDED in 850.")
        == exact_key("ulm", "it was founded in 850.")
        == -8096685545429230145
    )
    assert near_keys("t", WORDS)[0] == 3768009780452170540


def finder(path: Path) -> tuple[PassageStore, Deduplicator]:
    store = PassageStore.open(path, read_only=False) if path.exists() else PassageStore.create(path)
    return store, Deduplicator(store)


def keep(store: PassageStore, duplicates: Deduplicator, items: list[Prepared]) -> list[str]:
    with store.transaction():
        kept = duplicates.unique(items)
        result = store.add(item.passage for item in kept)
        duplicates.remember(zip(result.rowids, kept, strict=True))
    return [item.passage.id for item in kept]


def test_duplicates_are_found_within_a_batch_and_in_later_runs(tmp_path: Path) -> None:
    near = LONG.replace("rises in the hills", "springs in the hills", 1)
    store, duplicates = finder(tmp_path / "ds")
    assert keep(
        store, duplicates, [prepared("a", LONG), prepared("b", LONG.upper()), prepared("c", "Other words.")]
    ) == [
        "a",
        "c",
    ]
    store.close()
    store, duplicates = finder(tmp_path / "ds")
    with store:
        assert keep(store, duplicates, [prepared("d", near), prepared("e", "Other  words.")]) == []
        assert keep(store, duplicates, [prepared("f", near, near=False)]) == ["f"]
        store.remove(["a", "f"])
        assert keep(store, duplicates, [prepared("g", near)]) == ["g"]


def test_a_shared_key_alone_makes_no_duplicate(tmp_path: Path) -> None:
    store, duplicates = finder(tmp_path / "ds")
    with store:
        first = prepared("a", LONG)
        other = Prepared(Passage("b", "Quite another text.", title="River"), first.keys)
        assert keep(store, duplicates, [first, other]) == ["a", "b"]
