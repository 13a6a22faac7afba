"""One default: what a program, an engine, a command and an evaluation remember with is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ewe.config import Config, LongTermConfig
from ewe.errors import ConfigError, DatastoreError, InvalidRequestError
from ewe.longterm.default_memory import DEFAULTS, default_memory, default_rules
from ewe.longterm.evaluation.memory_systems import memory_rules
from ewe.longterm.memory_api import Memory
from ewe.longterm.open_memories import open_memories
from ewe.longterm.records import MemorySource, Scope
from tests.unit.longterm_parts import YearJudge, new_store

ANN = Scope("ann")


class CountingJudge(YearJudge):
    """Counts the pairs that it is asked about."""

    asked = 0

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.asked += len(pairs)
        return super().judge(pairs)


@pytest.fixture(autouse=True)
def no_encoder_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.default_memory.builtin_encoder_path", lambda: None)


def test_program_engine_and_evaluation_take_the_same_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noted(settings: LongTermConfig = DEFAULTS, *rest: object) -> object:
        seen.append(settings.model_copy(update={"path": None}))
        return default_rules(settings)

    monkeypatch.setattr("ewe.longterm.default_memory.default_rules", noted)
    Memory(tmp_path / "program").close()
    open_memories(Config.from_mapping({"longterm": {"path": str(tmp_path / "engine")}}), None, None).close()
    assert seen == [DEFAULTS, DEFAULTS]
    rules = memory_rules()["default"]()
    assert (type(rules.scorer), rules.threshold, rules.first) == (
        *(type(default_rules().scorer), default_rules().threshold, default_rules().first),
    )


@pytest.mark.parametrize(("turns", "source", "asks"), [
    (False, MemorySource("user", "ann", 0.7), False),
    (False, MemorySource("document", "atlas", 0.9), True),
    (True, MemorySource("user", "ann", 0.7), True),
])  # fmt: skip
def test_the_judge_is_not_asked_about_what_people_say(
    tmp_path: Path, turns: bool, source: MemorySource, asks: bool
) -> None:
    judge = CountingJudge()
    with new_store(tmp_path / "memories") as store:
        service = default_memory(store, LongTermConfig(judge_turns=turns), judge=judge)
        service.add("The bridge opened in 1923", ANN, source)
        marked = service.add("The bridge was opened in 1932", ANN, source).contradicts
        assert (judge.asked > 0, bool(marked)) == (asks, asks)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda memory, one: memory.search(None), "query must be a text, got nothing"),
        (lambda memory, one: memory.search("Porto", "5"), "top_k must be a whole number"),
        (lambda memory, one: memory.search("", threshold=2), r"threshold must lie in \[0, 1\]"),
        (lambda memory, one: memory.feedback(one, "no"), "correct must be True or False, got 'no'"),
        (lambda memory, one: memory.correct(one, None), "content must be a text, got nothing"),
        (lambda memory, one: memory.update(one, 5), "content must be a text, got int"),
        (lambda memory, one: memory.add("Tea.", source="bob"), "source must be a MemorySource"),
        (lambda memory, one: memory.add("Tea.", metadata=["topic"]), "metadata must map names to texts"),
        (lambda memory, one: memory.get_all(limit=None), "limit must be a whole number"),
        (lambda memory, one: memory.get_all(limit=-1), "limit must be at least 0"),
        (lambda memory, one: memory.add("Tea.", observed_at="2990-01-01"), "lies in the future"),
        (lambda memory, one: memory.add("Tea.", created_at=1_700_000_000_000), "not milliseconds"),
        (
            lambda memory, one: memory.add({"role": "user", "content": "I like tea.", "created_at": "2990-01-01"}),
            "future",
        ),
    ],
)
def test_what_is_no_argument_is_refused_before_anything_happens(
    tmp_path: Path, ask: Callable[[Memory, str], object], says: str
) -> None:
    with Memory(tmp_path / "me.db", user="ann") as memory:
        [one] = memory.add("I live in Porto.")
        with pytest.raises(InvalidRequestError, match=says):
            ask(memory, one.id)
        assert memory.get_all() == [one]


def test_what_begins_later_can_be_told_today(tmp_path: Path) -> None:
    with Memory(tmp_path / "me.db", user="ann") as memory:
        [one] = memory.add("I work for Siemens.", valid_from="2990-01-01")
        assert memory.search("Where do I work?") == []
        assert [found.id for found in memory.search("Where do I work?", as_of="2990-06-01")] == [one.id]


def test_closed_memories_and_no_place_say_so(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "me.db", user="ann")
    memory.close()
    for ask in (lambda: memory.search("Porto"), lambda: memory.add("I live in Porto."), memory.get_all):
        with pytest.raises(DatastoreError, match="was closed: open it again"):
            ask()
    with pytest.raises(ConfigError, match="name where memories are to lie"):
        Memory(None)  # type: ignore[arg-type]


def test_who_asks_of_themselves_finds_themselves_first(tmp_path: Path) -> None:
    with Memory(tmp_path / "me.db", user="nora") as memory:
        own = "Nora lives in a flat in Majorna with the kids."
        for fact in (own, "Karin moved to Bergen.", "Nora's sister lives in Oslo."):
            memory.add(fact)
        assert memory.search("Where do I live?")[0].content == own
        assert memory.search("Where does my sister live?")[0].content == "Nora's sister lives in Oslo."
        assert memory.search("Where did Karin move?")[0].content == "Karin moved to Bergen."


def test_what_was_said_in_the_year_of_the_question_comes_first(tmp_path: Path) -> None:
    with Memory(tmp_path / "me.db", user="nora") as memory:
        memory.add("Nora met a friend in Lund, in a cafe by the river, and had cake there.", observed_at="2024-03-01")
        memory.add("Nora met a friend.", observed_at="2025-03-01")
        found = [one.content for one in memory.search("Which friend did I meet in 2024?")]
        assert found[0].startswith("Nora met a friend in Lund")
