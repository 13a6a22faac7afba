"""What an engine tells those who watch it: figures, heartbeat, events of several answers, units of different salts."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from engine_parts import sentences
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.engine_loop import EngineLoop
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.request import Request
from ewe.engine.status import EngineStatus, status_of
from ewe.engine.units.unit_cache import UnitCache
from ewe.errors import PromptTooLongError
from ewe.types.sampling_params import SamplingParams

CONFIG = Config.from_mapping({"memory": {"unit_tokens": 24}, "scheduler": {"max_num_seqs": 2}})
LONG = SamplingParams(max_tokens=40, ignore_eos=True)


def status(bench: Bench) -> EngineStatus:
    engine = bench.engine
    return status_of(engine, 0.0)


def test_running_and_waiting_answers_and_blocks_are_counted() -> None:
    bench = Bench(CONFIG, script=sentences)
    idle = status(bench)
    assert (idle.running, idle.waiting, idle.cache_usage) == (0, 0, 0.0)
    for name in "abcde":
        bench.add(name, "Tell me", LONG)
    bench.core.step()
    busy = status(bench)
    assert (busy.running, busy.waiting) == (2, 3)
    assert 0 < busy.cache_usage < 1
    bench.run()
    assert status(bench) == idle


def test_answers_that_wait_for_their_prompt_count_as_waiting() -> None:
    bench = Bench(CONFIG, script=sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=5, n=3))
    assert status(bench).waiting == 3


def test_units_that_nobody_holds_do_not_count_as_usage() -> None:
    bench = Bench(CONFIG, script=sentences)
    bench.add("a", "Tell me", LONG, documents=["Some text."])
    bench.run()
    after = status(bench)
    assert (after.units, after.unit_hits, after.unit_misses, after.cache_usage) == (1, 0, 1, 0.0)
    assert after.unused_blocks > 0
    bench.add("b", "Tell me", LONG, documents=["Some text."])
    bench.run()
    assert (status(bench).unit_hits, status(bench).unit_misses) == (1, 1)


def test_an_event_says_which_answer_it_is_about() -> None:
    bench = Bench(CONFIG, script=sentences)
    events: list[StreamEvent] = []
    bench.add("a", "Tell me", SamplingParams(max_tokens=20, n=2, temperature=1.0, seed=1), listener=events.append)
    finished = bench.run()
    for index in (0, 1):
        texts = [event.data["text"] for event in events if event.kind == "text" and event.index == index]
        assert "".join(texts) == finished["a", index].text


def test_a_loop_with_nothing_to_do_turns_and_one_that_hangs_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.engine.engine_loop._LONGEST_SLEEP_S", 0.01)
    bench = Bench(CONFIG, script=sentences)
    loop = EngineLoop(bench.core, bench.engine.changed, lambda error: None)
    gate, entered = threading.Event(), threading.Event()

    def hang(core: Any) -> None:
        entered.set()
        gate.wait(60)

    begin = time.monotonic()
    while loop._turned < begin:
        assert time.monotonic() < begin + 60, "the idle loop does not turn"
        time.sleep(0.001)
    loop.do(hang)
    assert entered.wait(60)
    turned = loop._turned
    time.sleep(0.05)
    assert loop._turned == turned
    assert loop.stalled_s >= 0.05
    gate.set()
    loop.close()


def test_how_long_a_request_was_queued() -> None:
    bench = Bench(CONFIG, script=sentences)
    first, *_, last = [bench.add(name, "Tell me", LONG) for name in "abc"]
    last.arrived = first.arrived  # however long it took to make them
    bench.run()
    assert last.schedule.queued_s > first.schedule.queued_s


def test_the_same_text_under_another_salt_is_another_unit() -> None:
    cache = UnitCache(BlockManager(num_blocks=20, block_size=4), keep_unused=True)
    mine, theirs = cache.acquire((1, 2), "mine"), cache.acquire((1, 2), "theirs")
    assert mine is not theirs
    assert not set(mine.table.blocks) & set(theirs.table.blocks)
    assert cache.acquire((1, 2), "mine") is mine
    for unit in (mine, mine, theirs):
        unit.ready = True
        cache.release(unit)
    assert cache.acquire((1, 2), "theirs") is theirs


def test_sequences_of_different_salts_share_no_units_and_write_the_same() -> None:
    bench = Bench(CONFIG, script=sentences)
    for name, salt in (("a", "x"), ("b", "x"), ("c", "y")):
        bench.core.active.add(
            bench.engine.input_processor.build(name, Request("Tell me", LONG, ["Some text."], salt=salt))
        )
    bench.run()
    assert (status(bench).unit_misses, status(bench).unit_hits) == (2, 1)
    assert len({generation.text for generation in bench.finished.values()}) == 1


def test_a_prompt_that_is_too_long_has_an_error_of_its_own() -> None:
    bench = Bench(CONFIG, script=sentences, max_model_len=50)
    with pytest.raises(PromptTooLongError):
        bench.add("a", "x" * 60)
