"""Memory pressure: in a pool of any size that holds one request, everything finishes with the same text."""

from __future__ import annotations

import math
from typing import Any

import pytest
from engine_bench import LATENCIES, GatedBench, Latencies
from engine_parts import Judge, Library, sentences, words
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import Bench

from ewe.config import Config
from ewe.types.sampling_params import SamplingParams

DOCUMENTS = ["one two three", "four five", "six seven eight nine ten", "a b c", "do re mi"]
UNIT_TOKENS, UNITS, LENGTH = 12, 4, 40  # capacity of a unit, of both lanes, and of the longest context
PREFIXES = ["", "a system prompt:{memory}", "of 17 characters:{memory}", "no:{memory}"]
LONGEST_PREFIX = 17


def config(block_size: int = 4, mode: str = "blocking", cache: bool = True, **scheduler: Any) -> Config:
    return Config.from_mapping(
        {
            "memory": {
                "unit_tokens": UNIT_TOKENS,
                "retrieval_units": 2,
                "verification_units": 2,
                "placement": "in_prompt",  # of prompts with a mark
            },
            "feedback": {"mode": mode, "verify_every": 5, "retrieve_every": 3},
            "cache": {"block_size": block_size, "unit_cache": cache},
            "scheduler": {"max_num_seqs": 4, **scheduler},
        }
    )


def smallest_pool(block_size: int) -> int:
    """Blocks of a pool that just holds one request: the null block, old and new units, a prefix, a context."""
    memory = 2 * UNITS * math.ceil(UNIT_TOKENS / block_size) + math.ceil(LONGEST_PREFIX / block_size)
    return 1 + memory + math.ceil(LENGTH / block_size)


def run(
    settings_: Config,
    num_blocks: int,
    requests: list[dict[str, Any]],
    latencies: Latencies,
    bench_type: type[GatedBench] = GatedBench,
) -> Any:
    bench = bench_type(settings_, Library(), Judge(), sentences, num_blocks=num_blocks)
    bench.runner.strength = 6.0
    for index, request in enumerate(requests):
        params = SamplingParams(max_tokens=LENGTH - 8, temperature=0.7, seed=index, n=request["n"])
        documents = [DOCUMENTS[i] for i in request["documents"]]
        bench.add(f"r{index}", PREFIXES[request.get("prefix", 0)] + request["prompt"], params, documents)
    results = bench.run_with(latencies)
    return bench, {key: (g.text, g.finish_reason, g.logprobs) for key, g in results.items()}


requests = st.lists(
    st.fixed_dictionaries(
        {
            "prompt": st.sampled_from(["Tell me", "of a", "who is it"]).filter(lambda text: len(text) <= 8),
            "prefix": st.integers(0, 3),
            "documents": st.lists(st.integers(0, 4), max_size=2, unique=True),
            "n": st.sampled_from([1, 1, 1, 3]),
        }
    ),
    min_size=2,
    max_size=4,
)


@examples(3, 10)
@given(
    requests=requests,
    block_size=st.sampled_from([1, 3, 4, 16]),
    more=st.integers(0, 12),
    mode=st.sampled_from(["blocking", "optimistic"]),
    cache=st.booleans(),
    latencies=LATENCIES,
    max_num_seqs=st.integers(1, 4),
    budget=st.integers(0, 12),
    ahead=st.booleans(),
)
def test_any_pool_gives_the_same_texts(
    requests: list[dict[str, Any]],
    block_size: int,
    more: int,
    mode: str,
    cache: bool,
    latencies: Latencies,
    max_num_seqs: int,
    budget: int,
    ahead: bool,
) -> None:
    limits = {"max_num_seqs": max_num_seqs, "max_num_batched_tokens": max_num_seqs + UNIT_TOKENS + budget}
    tight = config(block_size, mode, cache, async_scheduling=ahead, **limits)
    _, found = run(tight, smallest_pool(block_size) + more, requests, latencies)
    _, expected = run(config(), 2000, requests, Latencies())
    assert found == expected


@pytest.mark.parametrize("ahead", [False, True])
def test_contexts_are_swapped_out_and_back_when_blocks_run_short(ahead: bool) -> None:
    requests_ = [{"prompt": "Tell me", "documents": [i], "n": 1, "prefix": i} for i in range(4)]
    bench, found = run(config(async_scheduling=ahead), smallest_pool(4), requests_, Latencies())
    _, expected = run(config(), 2000, requests_, Latencies())
    assert found == expected
    assert bench.core.scheduler.swapper.swaps > 0
    events = [event.kind for g in bench.finished.values() for event in g.trace]
    assert events.count("swap_out") == bench.core.scheduler.swapper.swaps
    assert events.count("swap_in") > 0


def test_a_request_in_any_state_can_be_aborted_while_it_is_swapped_out() -> None:
    bench = GatedBench(config(), Library(), Judge(), sentences, num_blocks=smallest_pool(4))
    for index in range(6):
        bench.add(f"r{index}", "Tell me", SamplingParams(max_tokens=30), [DOCUMENTS[index % 5]])
    aborted = set()
    for _ in range(2000):
        for gate, _position in bench.open_jobs():
            gate.release()
        swapped = [sequence for sequence in bench.core.active.sequences if sequence.schedule.swapped is not None]
        if swapped and len(aborted) < 2:
            aborted.add(swapped[-1].request.id)
            bench.core.active.abort(swapped[-1].request.id)
            bench.check()
        if not bench.step():
            break
    bench.check()
    assert len(aborted) == 2
    assert {name for (name, _), g in bench.finished.items() if g.finish_reason == "abort"} == aborted
    assert len(bench.finished) == 6


# --- the scheduler's limits


def test_prompts_run_in_chunks_and_units_in_one_pass_with_what_waits_for_them() -> None:
    bench = Bench(config(max_num_batched_tokens=16), None, None, words("", "", "Aa."))
    bench.add("a", "a prompt of thirty-four tokens....:", SamplingParams(max_tokens=8), ["one", "two three"])
    bench.run()
    sizes = [[len(row.token_ids) for row in rows] for rows in bench.runner.rows_run]
    assert sizes[0] == [3, 9, 4]  # both units together, and what has room of the prompt
    assert sizes[1:3] == [[16], [15]]
    assert all(sum(step) <= 16 for step in sizes)


def test_a_unit_comes_in_while_others_decode() -> None:
    """However long it is: the settings leave room for it beside all decoding sequences."""
    bench = Bench(config(max_num_batched_tokens=4 + UNIT_TOKENS), None, None, sentences)
    for name in "abc":
        bench.add(name, "Tell me", SamplingParams(max_tokens=60, ignore_eos=True))
    for _ in range(5):
        bench.core.step()
    late = bench.add("d", "of a", SamplingParams(max_tokens=5, ignore_eos=True), ["twelve tokens and more"])
    for _ in range(10):
        bench.core.step()
    assert late.is_finished
    bench.run()


def test_a_text_that_has_ended_meanwhile_is_not_swapped_out() -> None:
    bench = Bench(config(), None, None, sentences, num_blocks=7)
    asker, ending = (bench.add(name, "q:", SamplingParams(max_tokens=9, ignore_eos=True)) for name in "ab")
    bench.core.step()
    scheduler = bench.core.scheduler
    plan = scheduler.schedule([(asker, "wait"), (ending, "wait")])
    bench.core.active.end(ending, "abort")
    assert not scheduler.swapper.make_room(100, asker, plan)
    assert scheduler.swapper.swaps == 0


def test_the_blocks_of_a_unit_stay_its_own_until_its_pass_though_nobody_wants_it_any_more() -> None:
    """A text may end right after its memory was refreshed; a younger one needs all blocks in the same pass."""
    bench = Bench(config(), None, None, sentences, num_blocks=7)
    ending = bench.add("a", "q:", SamplingParams(max_tokens=2), ["one two"])
    other = bench.add("b", "a prompt of twenty..", SamplingParams(max_tokens=1))
    for sequence in (ending, other):
        sequence.schedule.is_started = True
    scheduler = bench.engine.core.scheduler
    plan = scheduler.schedule([(ending, "encode")])
    assert plan.encoded == [ending]
    assert not ending.memory.units
    bench.core.active.end(ending, "abort")
    other.schedule.is_admitted = True
    scheduler.add_contexts(plan, [other])
    assert [len(row.token_ids) for row in plan.rows] == [7]  # six blocks are not enough for both
    bench.runner.forward(plan.rows)
    scheduler.launched(plan)
    bench.check()
    assert bench.run()["b", 0].finish_reason == "length"


def test_so_do_the_blocks_of_the_prefix_that_it_follows() -> None:
    bench = Bench(config(), None, None, sentences, num_blocks=7)
    ending = bench.add("a", "abc:{memory}q:", SamplingParams(max_tokens=2), ["one two"])
    other = bench.add("b", "of 16 characters", SamplingParams(max_tokens=1))
    for sequence in (ending, other):
        sequence.schedule.is_started = True
    scheduler = bench.engine.core.scheduler
    plan = scheduler.schedule([(ending, "encode")])
    bench.core.active.end(ending, "abort")
    other.schedule.is_admitted = True
    scheduler.add_contexts(plan, [other])
    assert [len(row.token_ids) for row in plan.rows] == [4, 7]  # three blocks are left, and the other one needs four
    bench.runner.forward(plan.rows)
    scheduler.launched(plan)
    bench.check()
    assert bench.run()["b", 0].finish_reason == "length"


def test_a_long_prefix_takes_several_passes_and_is_there_for_the_next_request() -> None:
    bench = Bench(config(max_num_batched_tokens=16), None, None, words("", "Aa."))
    prompt = "a system prompt of 37 characters, once{memory}q:"
    for name in "ab":
        bench.add(name, prompt, SamplingParams(max_tokens=4), ["one two"])
    first, second = bench.run().values()
    sizes = [[(len(row.token_ids), row.start_position) for row in rows] for rows in bench.runner.rows_run]
    start = 38 + UNIT_TOKENS
    assert sizes[:3] == [[(16, 0)], [(16, 16)], [(6, 32), (7, 38), (2, start), (1, start)]]
    assert (first.stats.prefix_tokens_encoded, second.stats.prefix_tokens_encoded) == (38, 0)
    assert first.text == second.text == "Aa."


def test_a_prefix_whose_pass_failed_is_encoded_from_its_beginning() -> None:
    bench = Bench(config(max_num_batched_tokens=16), None, None, words("", "Aa."))
    prompt = "a system prompt of 37 characters, once{memory}q:"
    bench.add("a", prompt, SamplingParams(max_tokens=4), ["one two"])
    bench.core.step()
    bench.runner.fail_next = RuntimeError("boom")
    bench.core.step()
    bench.add("b", prompt, SamplingParams(max_tokens=4), ["one two"])
    results = bench.run()
    assert (results["a", 0].finish_reason, results["b", 0].text) == ("error", "Aa.")
    starts = [row.start_position for rows in bench.runner.rows_run for row in rows if row.prefix_slots is None]
    assert starts[:4] == [0, 0, 16, 32]


def test_a_unit_whose_pass_failed_is_encoded_again() -> None:
    bench = Bench(config(), None, None, words("Aa.", "Bb."))
    bench.runner.fail_next = RuntimeError("boom")
    for name in "ab":
        bench.add(name, "q:", SamplingParams(max_tokens=5), ["one two"])
        assert bench.run()[name, 0].text == ("" if name == "a" else "Bb.")
    assert encoded(bench) == [7]


def test_no_more_sequences_run_at_once_than_allowed() -> None:
    bench = Bench(config(max_num_seqs=2), None, None, sentences)
    for name in "abcde":
        bench.add(name, "Tell me", SamplingParams(max_tokens=10, ignore_eos=True))
    bench.run()
    assert max(len(rows) for rows in bench.runner.rows_run) == 2
    assert list(bench.finished) == [(name, 0) for name in "abcde"]  # first come, first served


# --- units and prompt blocks are shared


def test_answers_share_the_prompt_and_copy_on_write() -> None:
    bench = Bench(config(), None, None, sentences)
    bench.runner.strength = 6.0
    params = SamplingParams(max_tokens=20, n=4, temperature=1.0, seed=1, ignore_eos=True)
    first = bench.add("a", "a prompt of 21 tokens", params)
    bench.core.step()
    members = bench.core.active.sequences
    assert len(members) == 4
    shared = first.table.blocks
    assert len(shared) == 6  # of 4 tokens
    assert [bench.engine.block_manager.reference_count(block) for block in shared] == [4] * 6
    bench.core.step()
    # Each writes its first token into the last block, so all but one have made a copy of it.
    assert [member.table.blocks[:5] for member in members] == [shared[:5]] * 4
    assert len({member.table.blocks[5] for member in members}) == 4
    bench.check()
    results = bench.run()
    assert len({g.text for g in results.values()}) == 4
    # Every answer is what it would be if it were the only one: the prompt's KV was not disturbed.
    assert {key: g.text for key, g in results.items()} == _texts_of_a_roomy_run(params)


def _texts_of_a_roomy_run(params: SamplingParams) -> dict[Any, str]:
    bench = Bench(config(block_size=64), None, None, sentences)
    bench.runner.strength = 6.0
    bench.add("a", "a prompt of 21 tokens", params)
    return {key: g.text for key, g in bench.run().items()}


def encoded(bench: Bench) -> list[int]:
    """The lengths of the units that were encoded, in order."""
    return [len(row.token_ids) for rows in bench.runner.rows_run for row in rows if row.start_position == 0]


def test_a_unit_is_encoded_once_for_all_requests_now_and_later() -> None:
    bench = Bench(config(), None, None, words("Aa."))
    for name in "abc":
        bench.add(name, "q:", SamplingParams(max_tokens=5), ["one two"])
    bench.run()
    bench.add("d", "q:", SamplingParams(max_tokens=5), ["one two", "three"])
    result = bench.run()["d", 0]
    assert encoded(bench) == [7, 5]
    events = [event.data for event in result.trace if event.kind == "refresh"]
    assert [event["cached"] for event in events] == [True, False]
    assert result.stats.unit_tokens_encoded == 5


def test_without_the_unit_cache_units_leave_with_their_requests() -> None:
    bench = Bench(config(cache=False), None, None, words("Aa."))
    for name in "ab":
        bench.add(name, "q:", SamplingParams(max_tokens=5), ["one two"])
        bench.run()
        assert bench.engine.block_manager.num_free == bench.engine.block_manager.num_blocks - 1
    assert encoded(bench) == [7, 7]


def test_unused_units_make_room_and_are_encoded_again_when_they_are_needed() -> None:
    bench = Bench(config(), None, None, words("", "", "Aa."), num_blocks=smallest_pool(4))
    expected = None
    for round_ in range(6):
        pair = [DOCUMENTS[round_ % 5], DOCUMENTS[(round_ + 1) % 5]]
        bench.add(f"r{round_}", "a prompt of thirty-four tokens...:", SamplingParams(max_tokens=3), pair)
        text = bench.run()[f"r{round_}", 0].text
        assert text == (expected or text)
        expected = text
    cache = bench.engine.memory_manager.cache
    assert cache.num_cached_blocks + bench.engine.block_manager.num_free == bench.engine.block_manager.num_blocks - 1
