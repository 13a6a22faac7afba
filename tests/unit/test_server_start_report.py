"""What the start of the server says while it lasts."""

from __future__ import annotations

import queue
import time

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.config import Config
from ewe.config.loading import LoadStep
from ewe.server import start_report
from ewe.server.start_report import StartLog, report_choice


def test_a_phase_is_told_as_it_begins_and_repeated_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(start_report, "say", said.append)
    log = StartLog(every_s=3600)
    log(LoadStep("reading"))
    for done in (1, 2):
        log(LoadStep("loading weights", done, 2, "tensors"))
    log.tell()
    log.close()
    assert said[:2] == ["phase reading", "phase loading weights: 1 of 2 tensors"]
    assert said[2].startswith("phase loading weights: 2 of 2 tensors, ")
    assert len(said) == 3


def test_it_repeats_itself_by_itself_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    monkeypatch.setattr(start_report, "say", said.put)
    log = StartLog(every_s=0.01)
    for _ in range(3):
        assert said.get(timeout=60).startswith("phase loading, ")
    log.close()
    left = said.qsize()
    time.sleep(0.05)
    assert said.qsize() == left


def test_the_choice_names_what_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    report_choice(Config.from_mapping({"datastore": "my-notes", "verifier": "claims"}))
    assert capsys.readouterr().err == "model builtin, datastore my-notes, verifier claims\n"
