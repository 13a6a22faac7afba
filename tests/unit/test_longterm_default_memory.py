"""One default: what a program, an engine, a command and an evaluation remember with is the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ewe.config import Config, LongTermConfig
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
