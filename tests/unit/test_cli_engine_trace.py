"""What the displays make of the engine's own events: the page's timeline and the terminal's text are the run's."""

from __future__ import annotations

import io
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from engine_bench import GatedBench
from engine_parts import Judge, Library, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ewe.cli.live_view import LiveView
from ewe.cli.text_view import LiveText, TextView
from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.evaluation.report.page import page_data
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams

UNITS = {"retrieval": 3, "verification": 2}


def run(mode: str, feedback: dict[str, Any], schedule: list[int], seed: int) -> tuple[Generation, list[StreamEvent]]:
    values = {
        "memory": {"unit_tokens": 24, **{f"{lane}_units": count for lane, count in UNITS.items()}},
        "cache": {"block_size": 4},
        "feedback": {"mode": mode, **feedback},
    }
    bench = GatedBench(Config.from_mapping(values), Library(), Judge(), sentences)
    bench.runner.strength = 6.0
    events: list[StreamEvent] = []
    bench.add("r", "Tell me", SamplingParams(max_tokens=70, temperature=0.8, seed=seed), listener=events.append)
    [generation] = bench.run_late(schedule).values()
    return generation, events


@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
@examples(10, 40)
@given(data=st.data())
def test_displays_follow_the_engine(mode: str, data: st.DataObject) -> None:
    feedback = {
        "verify_every": data.draw(st.integers(1, 20)),
        "max_attempts": data.draw(st.integers(1, 3)),
        "on_exhausted": data.draw(st.sampled_from(["keep_best", "flag", "drop"])),
    }
    # Many zeros: the longer answers are held back, the more is written and remembered beside them, and rolled back.
    schedule = data.draw(st.lists(st.sampled_from([0, 0, 0, 0, 0, 1, 2, 3]), max_size=90))
    generation, events = run(mode, feedback, schedule, data.draw(st.integers(0, 99)))
    check_page(generation)
    check_memory(generation)
    check_views(generation, events)


@pytest.mark.parametrize("seed", [33, 48, 166, 171])
def test_units_that_a_rewind_brings_back_are_in_the_trace(seed: int) -> None:
    rng = Random(seed)
    feedback = {"verify_every": 1 + seed % 4, "on_exhausted": "flag"}
    generation, events = run("optimistic", feedback, [rng.choice([0, 0, 0, 0, 0, 1, 2, 3]) for _ in range(90)], seed)
    assert "restore" in {event.kind for event in generation.trace}
    check_page(generation)
    check_memory(generation)
    check_views(generation, events)


def test_those_runs_hold_what_is_to_be_shown() -> None:
    runs = [run("optimistic", {"verify_every": 2}, [seed % 3] * 9, seed)[0] for seed in range(8)]
    assert sum(generation.stats.rewrites for generation in runs) > 8
    assert {event.kind for generation in runs for event in generation.trace} >= {"rewind", "refresh", "evict", "commit"}
    assert any(sentence.removed for generation in runs for sentence in generation.sentences)


def check_page(generation: Generation) -> None:
    page = page_data(generation)
    stats, timeline = generation.stats, page["timeline"]
    assert timeline["length"] == stats.tokens_kept + stats.tokens_discarded
    assert sum(item["to"] - item["from"] for item in timeline["removed"]) == stats.tokens_discarded
    for lane in timeline["lanes"]:
        assert lane["rows"] <= UNITS[lane["lane"]]
    assert "".join(piece["text"] for piece in page["pieces"]) == generation.text
    for shown, sentence in zip(page["sentences"], generation.sentences, strict=True):
        assert all(item["evidence"] for item in shown["removed"])
        assert bool(shown["evidence"]) == bool(sentence.claims)
        assert sentence.start == sentence.end or shown["runs"]


def check_memory(generation: Generation) -> None:
    """Units come and go in the trace as they do in memory: none leaves that is not there, and no lane overflows."""
    held: dict[str, list[int]] = {lane: [] for lane in UNITS}
    for event in generation.trace:
        if event.kind == "refresh":
            held[event.data["lane"]].append(event.data["unit_id"])
            assert len(held[event.data["lane"]]) <= UNITS[event.data["lane"]]
        elif event.kind == "restore":
            held[event.data["lane"]].append(event.data["unit_id"])
        elif event.kind == "evict":
            held[event.data["lane"]].remove(event.data["unit_id"])
    for before, event in pairwise(generation.trace):
        if before.kind == "rewind" and event.kind in ("evict", "restore"):
            assert event.num_tokens == before.num_tokens - before.data["discarded_tokens"]


def check_views(generation: Generation, events: list[StreamEvent]) -> None:
    view = LiveView(Console(file=io.StringIO(), width=200))
    for event in events:
        view.handle(event.kind, event.data)
    assert view.draft.text == generation.text
    for make in (TextView, LiveText):
        console = Console(file=io.StringIO(), width=2000, force_terminal=True, color_system=None, _environ={})
        text = make(console)
        for event in events:
            if event.kind != "finish":
                text.handle(event.kind, event.data)
        if isinstance(text, LiveText):  # what stands when the live region has gone
            console.print(text.live.get_renderable(), end="")
        assert isinstance(console.file, io.StringIO)
        assert console.file.getvalue().strip() == generation.text.strip()
