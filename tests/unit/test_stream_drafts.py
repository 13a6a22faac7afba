"""Readers of drafts: whoever applies drafts and rewinds, or a server's deltas and revisions, has the final text."""

from __future__ import annotations

from typing import Any

import pytest
from engine_bench import LATENCIES, GatedBench, Reader
from engine_parts import Judge, Library, number, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.server.engine_client.bridge import RunEvent
from ewe.server.engine_client.stream_parts import StreamParts, requested_events
from ewe.server.schemas.common import EweOptions
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams


def config(mode: str, **feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 2}
    return Config.from_mapping({"memory": memory, "cache": {"block_size": 4}, "feedback": {"mode": mode, **feedback}})


def parts_of(events: list[StreamEvent], options: EweOptions, choice: int = 0) -> list[Any]:
    """What a server's stream says of these events."""
    parts, wanted = StreamParts(options), requested_events(options)
    return [part for event in events if event.kind in wanted for part in parts.of(RunEvent(choice, event))]


def rebuilt(parts: list[Any]) -> str:
    """The text that a client has at the end."""
    text = ""
    for part in parts:
        text += part.delta
        if part.event == "revision":
            assert (part.data["end"], part.data["removed"]) == (len(text), text[part.data["start"] :])
            text = text[: part.data["start"]]
    return text


def write(data: st.DataObject, mode: str) -> Reader:
    """A random run with rewinds; the reader has seen all its events."""
    salt = data.draw(st.integers(0, 10**6))
    judge = Judge(lambda sentence: Verdict.REFUTED if number(salt, sentence) % 2 == 0 else Verdict.SUPPORTED)
    feedback = {
        "verify_every": data.draw(st.sampled_from([1, 3, 20])),
        "max_attempts": data.draw(st.integers(1, 3)),
        "on_exhausted": data.draw(st.sampled_from(["keep_best", "flag", "drop"])),
    }
    bench = GatedBench(config(mode, **feedback), Library(), judge, sentences)
    bench.runner.strength = 6.0
    stop = data.draw(st.sampled_from([(), ("abc", ". A"), ("j. Bc",), ("a b", ". Ab"), ("d",)]))
    params = SamplingParams(max_tokens=60, temperature=data.draw(st.sampled_from([0.0, 0.9])), seed=salt, stop=stop)
    reader = Reader()
    bench.add("a", f"Tell {'abcdefgh'[salt % 8]} me", params, listener=reader)
    bench.run_with(data.draw(LATENCIES))
    return reader


@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
@examples(8, 25)
@given(data=st.data())
def test_deltas_and_revisions_add_up_to_the_answer(mode: str, data: st.DataObject) -> None:
    events = write(data, mode).events
    text = events[-1].generation.text
    for options in (EweOptions(stream="draft"), EweOptions(stream="draft", events=True), EweOptions()):
        parts = parts_of(events, options)
        assert rebuilt(parts) == text
        revisions = [part for part in parts if part.event == "revision"]
        rewinds = [event for event in events if event.kind == "rewind"]
        assert len(revisions) == (len(rewinds) if options.stream == "draft" else 0)
        assert all(part.data["removed"] for part in revisions)


def test_those_runs_are_worth_reading() -> None:
    """Among a few of them are late rewinds that take back several sentences, and texts that end with one."""
    removed = []
    for salt in range(6):
        judge = Judge(lambda sentence, salt=salt: Verdict.REFUTED if number(salt, sentence) % 2 else Verdict.SUPPORTED)
        bench = GatedBench(config("optimistic", verify_every=1, on_exhausted="drop"), None, judge, sentences)
        reader = Reader()
        bench.add("a", f"Tell {'abcdef'[salt]} me", SamplingParams(max_tokens=60), listener=reader)
        bench.run_late([0] * 30)
        parts = parts_of(reader.events, EweOptions(stream="draft"))
        removed += [part.data["removed"] for part in parts if part.event == "revision"]
    assert len(removed) > 6
    assert any(". " in text for text in removed), "a refuted sentence and what was written after it"


def test_waiting_is_told_in_comments_to_those_who_did_not_ask_for_events() -> None:
    data = {"number": 3, "start": 0, "end": 2, "text": "A\n.", "attempt": 2}
    events = [StreamEvent("retrieving", {"query": "who\n\ndata: {}"}), StreamEvent("checking", data)]
    plain = parts_of(events, EweOptions())
    assert [part.comment for part in plain] == ["retrieving", "checking sentence 3"]
    asked = parts_of(events, EweOptions(events=True))
    assert [(part.event, part.comment) for part in asked] == [("retrieving", ""), ("checking", "")]


def test_choices_are_revised_apart() -> None:
    parts = StreamParts(EweOptions(stream="draft"))

    def tell(choice: int, kind: str, **data: Any) -> list[Any]:
        return list(parts.of(RunEvent(choice, StreamEvent(kind, data))))

    tell(0, "draft", text="One two", start=0)
    tell(1, "draft", text="Three", start=0)
    rewind = {"start": 1, "text": "hree", "kept_chars": 1, "reason": "refuted", "attempt": 1}
    [part] = tell(1, "rewind", **rewind)
    assert part.data == {"start": 1, "end": 5, "removed": "hree", "reason": "refuted", "attempt": 1}
    [part] = tell(0, "rewind", **{**rewind, "kept_chars": 4})
    assert (part.data["end"], part.data["removed"]) == (7, "two")
