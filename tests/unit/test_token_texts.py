"""Streams across processes: who gets tokens, and makes their texts, tells just what the engine would have told."""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from engine_bench import LATENCIES, GatedBench
from engine_parts import Judge, Library, number, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import CharTokenizer

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.server.own_process.engine_child import EngineChild
from ewe.server.own_process.remote_engine import RemoteEngine, _UnderWay
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams

TIMES = ("latency_s", "waited_s", "queued_s")


def told(event: StreamEvent) -> Any:
    """An event without its times; of what it ends with, the text."""
    data = {key: value for key, value in json.loads(json.dumps(event.data)).items() if key not in TIMES}
    return event.kind, data, event.index, event.generation and event.generation.text


class BothEnds:
    """What the two processes do with one request's events, as far as JSON."""

    def __init__(self, holds_text: bool) -> None:
        self.heard: list[StreamEvent] = []
        self.num_tokens = 0
        self.child: Any = object.__new__(EngineChild)
        self.child._events = deque()
        self.server: Any = object.__new__(RemoteEngine)
        self.server.prompts = SimpleNamespace(tokenizer=CharTokenizer())
        self.server._facts = SimpleNamespace(holds_text=holds_text)
        self.hears = {"listener": partial(self.child._note, "a"), "on_tokens": partial(self.child._note_tokens, "a")}

    def pass_on(self, request: Any) -> None:
        self.server._under_way = {"a": _UnderWay(request, self.heard.append)}
        for message in json.loads(json.dumps(list(self.child._events), default=str)):
            self.num_tokens += isinstance(message[1], int) and len(message) - 2
            self.server._hear(message)


def bench_of(mode: str, salt: int, feedback: dict[str, Any]) -> GatedBench:
    """With rewinds, where there is a judge: in the mode "none" text is final at once."""
    memory = {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 2}
    chosen = {**feedback, "mode": "blocking" if mode == "none" else mode}
    config = Config.from_mapping({"memory": memory, "cache": {"block_size": 4}, "feedback": chosen})
    judge = Judge(lambda sentence: Verdict.REFUTED if number(salt, sentence) % 2 == 0 else Verdict.SUPPORTED)
    bench = GatedBench(config, Library(), None if mode == "none" else judge, sentences)
    bench.runner.strength = 6.0
    return bench


@pytest.mark.parametrize("mode", ["blocking", "optimistic", "none"])
@examples(4, 15)
@given(data=st.data())
def test_both_ends_together_tell_what_the_engine_tells(mode: str, data: st.DataObject) -> None:
    salt, latencies = data.draw(st.integers(0, 10**6)), data.draw(LATENCIES)
    feedback = {"verify_every": data.draw(st.sampled_from([1, 3, 20])), "max_attempts": data.draw(st.integers(1, 3))}
    stop = data.draw(st.sampled_from([(), ("abc", ". A")]))
    params = SamplingParams(max_tokens=60, temperature=0.9, seed=salt, stop=stop, n=data.draw(st.integers(1, 2)))
    prompt = f"Tell {'abcdefgh'[salt % 8]} me"

    bench, events = bench_of(mode, salt, feedback), []
    bench.add("a", prompt, params, listener=events.append)
    bench.run_with(latencies)

    bench = bench_of(mode, salt, feedback)
    ends = BothEnds(bench.core.policies.holds_text)
    assert ends.server._facts.holds_text == (mode != "none")
    sequence = bench.add("a", prompt, params, **ends.hears)
    finished = bench.run_with(latencies)
    texts = {index: generation.text for (_, index), generation in finished.items()}
    generations = [message for message in ends.child._events if message[1] == "finish"]
    for message in generations:
        message[3] = None  # is compared apart: JSON has no lasting form of its times
    ends.pass_on(sequence.request)

    for index in texts:  # what two answers bring in one step comes in any order
        one, other = ([told(e) for e in all_ if e.index == index] for all_ in (events, ends.heard))
        other = [(*it[:3], texts[index] if it[0] == "finish" else None) for it in other]
        if mode == "none":  # text that is final at once comes with its draft, before what follows from that
            one, other = (sorted(all_, key=lambda it: it[0] == "text") for all_ in (one, other))
        assert other == one
    assert (ends.num_tokens > 0) == (not stop), "only where nothing can be cut away, tokens are told"


def test_a_character_in_parts_comes_with_its_last_token_or_with_the_end() -> None:
    from engine_tokenizers import byte_level

    tokenizer = byte_level()
    whole = tokenizer("a🌍b", add_special_tokens=False)["input_ids"]
    server: Any = object.__new__(RemoteEngine)
    server.prompts, server._facts = SimpleNamespace(tokenizer=tokenizer), SimpleNamespace(holds_text=False)
    heard: list[StreamEvent] = []
    request: Any = SimpleNamespace(prompt_ids=[], original=SimpleNamespace(kept={}))
    server._under_way = {"a": _UnderWay(request, heard.append)}
    for token_id in whole:
        server._hear(["a", 1, token_id])
    server._hear(["b", 0, whole[0]])  # of one that nobody reads any more
    texts = [event.data for event in heard if event.kind == "text"]
    assert [data["text"] for data in texts] == ["a", "🌍", "b"]
    assert [data["num_tokens"] for data in texts] == [1, len(whole) - 1, len(whole)]
    assert {event.index for event in heard} == {1}
