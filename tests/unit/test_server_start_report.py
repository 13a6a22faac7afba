"""What the start of the server says while it lasts."""

from __future__ import annotations

import json
import queue
import time

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.config import Config
from ewe.config.loading import LoadStep
from ewe.server.app import create_app
from ewe.server.observability import log_lines, start_report
from ewe.server.observability.log_lines import say_as
from ewe.server.observability.start_report import StartLog, report_choice, report_start
from ewe.server.settings import ServerSettings


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


def test_in_json_every_line_is_an_object(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_start_form", "text")
    say_as("json")
    report_choice(Config())
    settings = ServerSettings(host="0.0.0.0", port=1, log_format="json")
    report_start(create_app(None, settings, None), settings, 1, ["warning: x is no setting"])
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {tuple(line) for line in lines} == {("time", "level", "event")}
    assert lines[0]["level"] == "info"
    assert lines[0]["event"].startswith("model builtin")
    assert ("warning", "warning: x is no setting") in {(line["level"], line["event"]) for line in lines}
    assert any(line["event"] == "route GET /health" for line in lines)


def test_the_choice_names_what_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    say_as("text")
    report_choice(Config.from_mapping({"datastore": "my-notes", "verifier": "claims"}))
    assert capsys.readouterr().err == "model builtin, datastore my-notes, verifier claims\n"
