"""The engine over a pool in fp8, with a mock model whose numbers need their scales: swaps, forks, rewinds, copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from engine_bench import LATENCIES, DeepRunner, GatedBench, Latencies
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from test_engine_pressure import config, requests, run, smallest_pool

from ewe.engine.kvcache.fp8 import FP8, dequantise, quantise


class Numbers:
    """Keys or values of one layer in fp8, which the mock model writes and reads as whole numbers [slots, 1, 1].

    Each is alone in its head, so its code is always 448, and the scale tells them apart.
    """

    def __init__(self, codes: torch.Tensor, scales: torch.Tensor) -> None:
        self._bytes, self._scales = codes.view(torch.uint8), scales

    def __setitem__(self, place: Any, values: Any) -> None:
        slots, head, _ = place
        codes, self._scales[slots, head] = quantise(torch.as_tensor(values, dtype=torch.float32)[..., None])
        self._bytes[slots, head] = codes.view(torch.uint8)

    def __getitem__(self, place: Any) -> np.ndarray:
        slots, head, column = place
        index = torch.from_numpy(slots.copy())
        codes = self._bytes[index, head].view(FP8)
        return dequantise(codes, self._scales[index, head], torch.float32)[..., column].round().numpy()


class Fp8Runner(DeepRunner):
    def _layer(self, pool: Any) -> tuple[Numbers, Numbers]:
        return Numbers(pool.keys[0], pool.key_scales[0]), Numbers(pool.values[0], pool.value_scales[0])


class Fp8Bench(GatedBench):
    runner_type = Fp8Runner
    pool_dtype = FP8


@examples(2, 5)
@given(
    requests=requests,
    block_size=st.sampled_from([1, 3, 4, 16]),
    more=st.integers(0, 12),
    mode=st.sampled_from(["blocking", "optimistic"]),
    latencies=LATENCIES,
)
def test_the_texts_are_those_of_a_large_pool_in_full_precision(
    requests: list[dict[str, Any]], block_size: int, more: int, mode: str, latencies: Latencies
) -> None:
    _, found = run(config(block_size, mode), smallest_pool(block_size) + more, requests, latencies, Fp8Bench)
    _, expected = run(config(), 2000, requests, Latencies())
    assert found == expected


def test_contexts_are_swapped_and_forked_and_taken_back() -> None:
    """What the property above may or may not meet."""
    wanted = [{"prompt": "Tell me", "documents": [i], "n": 3 if i == 1 else 1} for i in range(4)]
    bench, found = run(config(), smallest_pool(4), wanted, Latencies(), Fp8Bench)
    _, expected = run(config(), 2000, wanted, Latencies())
    assert found == expected
    assert bench.core.scheduler.swapper.swaps > 0
    assert sum(generation.stats.tokens_discarded for generation in bench.finished.values()) > 0
    assert len(found) == 6
