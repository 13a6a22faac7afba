"""What many new memories will be compared with is read ahead, in one batch, and is what is read one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.longterm_changes import read
from ewe.config.lazy import Lazy
from ewe.longterm.change import change_reading, change_search
from ewe.longterm.change.change_reading import Stance, Telling
from ewe.longterm.change.change_search import LOOKED_THROUGH
from ewe.longterm.change.reading_ahead import foreseen
from ewe.longterm.change.told_words import ToldWords
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.verification.judges.cached import CachedJudge
from tests.unit.longterm_parts import new_store

DAY = 86400.0
ANN, BOB, ME = Scope("ann"), Scope("bob"), MemorySource("user", "ann", 0.7)
TEXTS = list(dict.fromkeys(text for half in read().values() for pair in half for text in (pair.older, pair.newer)))


class Reader:
    """Reads nothing as a change, and notes what it is asked, a list per call."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, str]]] = []

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.calls.append(list(pairs))
        return np.tile(np.float32([0, 0, 1]), (len(pairs), 1))


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()
    monkeypatch.setattr(change_reading, "_reader", Lazy(lambda: CachedJudge(made)))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        yield opened


def told(texts: Sequence[str], scope: Scope = ANN, start: float = 1.0, step: float = 1.0) -> list[Memory]:
    return [Memory("new", text, "turn", ME, scope, created_at=start + step * place) for place, text in enumerate(texts)]


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_the_pairs_that_are_read_one_by_one_are_foreseen(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    asked: list[tuple[str, str]] = []

    def compare_all(pairs: Sequence[tuple[str, str]], telling: Telling) -> list[Stance]:
        asked.extend(pairs)
        return [Stance.APART] * len(pairs)

    monkeypatch.setattr(change_search, "compare_all", compare_all)
    there = [replace(one, id=str(place)) for place, one in enumerate(told(TEXTS[: LOOKED_THROUGH - 20], step=DAY))]
    over = [replace(one, valid_until=one.begins + 50 * DAY) for one in there[::4]]  # some of them while others are told
    store.add([*over, *(one for place, one in enumerate(there) if place % 4)])
    new = told(TEXTS[LOOKED_THROUGH - 20 : LOOKED_THROUGH + 20], start=200 * DAY, step=step)
    ahead, memories = foreseen(new, store), MemoryService(store)
    for one in new:
        memories.add_all([one])
    assert len(ahead) > len(new)
    assert ahead == asked


def test_memories_that_come_together_are_read_in_one_batch_each_persons_own(store: MemoryStore, reader: Reader) -> None:
    said = ("I live in Porto.", "I saw a ship in Porto.", "My flat in Porto is small.")
    MemoryService(store).add_all([*told(said), *told(said[:2], BOB), *told([said[0]], Scope("cid"))])
    [pairs] = reader.calls
    assert set(pairs) == {(older, newer) for newer in said for older in said[: said.index(newer)]}


def test_nothing_is_read_ahead_for_a_single_one_or_few_beside_many(store: MemoryStore) -> None:
    store.add([replace(one, id=str(place)) for place, one in enumerate(told(TEXTS[:150]))])
    new = told(TEXTS[150:153])
    assert foreseen(new, store)
    assert foreseen(new[:2], store) == []


def test_words_weigh_as_much_as_in_the_store(store: MemoryStore) -> None:
    words = ToldWords(40)
    assert words.scores(TEXTS[0], 9).shape == (0,)
    store.add([replace(one, id=str(place)) for place, one in enumerate(told(TEXTS[:40]))])
    for text in TEXTS[:40]:
        words.add(text)
    found = dict(store.lexicon.search(TEXTS[50], store.scope_numbers([ANN]), 9))
    scores = [found.get(number, 0.0) for number in sorted(store.all_statements(store.scope_numbers([ANN])))]
    assert max(scores) > 0
    assert words.scores(TEXTS[50], 9) == pytest.approx(scores)
