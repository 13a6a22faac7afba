"""How near the engine's attention comes to what the device can do: decoding in bytes, prefill in operations per second.

Decoding reads every key and value once and does little with them, so its limit is the memory's bandwidth, measured here
as a large copy; prefill's is a large matrix product. Beside it stands torch's fused attention over the same keys laid
out densely, without the biases, gathered beforehand for free. Units are each row's own, then shared by all rows, where
they need to be read only once. On a GPU the calls are replayed from a CUDA graph, so that launching them costs nothing;
on a CPU the engine's backend is plain torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.common import parse_arguments, pick_size, report, seconds
from ewe.attention.backend import LayerCall
from ewe.attention.choose import choose_backend
from ewe.attention.metadata import ForwardRow, IntArray, place_rows
from ewe.kvcache.pool import KVPool, LayerShape

_BLOCK = 16
# Calls per timing, as a model's layers share one plan.
_CALLS = 10


class Bench:
    """One layer's pool, and rows over it: k units of M tokens and L tokens of context each."""

    def __init__(self, shape: dict[str, int], dtype: torch.dtype, device: str, repeats: int) -> None:
        self.heads, self.kv_heads = shape["num_attention_heads"], shape["num_key_value_heads"]
        self.dim = shape["hidden_size"] // self.heads
        self.dtype, self.device, self.repeats = dtype, device, repeats

    def attention(self, rows: list[ForwardRow], num_slots: int) -> float:
        """Seconds per call of the engine's attention over these rows."""
        pool = KVPool(
            [LayerShape(self.kv_heads, self.dim, self.dim)], -(-num_slots // _BLOCK), _BLOCK, self.dtype, self.device
        )
        keys, values = pool.keys[0].normal_(), pool.values[0].normal_()
        backend = choose_backend(torch.device(self.device), pool)
        batch = place_rows(rows, "paper")
        plan = backend.plan(batch, None, False)
        query = self.random(self.heads, len(batch.token_ids), self.dim)
        slots = torch.from_numpy(batch.write_slots).to(self.device)
        new = keys[slots].transpose(0, 1), values[slots].transpose(0, 1)
        call = LayerCall(query, *new, keys, values, self.dim**-0.5, None)
        return self.time(partial(backend.attend, call, plan))

    def dense(self, batch: int, queries: int, keys: int, causal: bool) -> float:
        """Seconds per call of torch's fused attention over dense keys and values."""
        query = self.random(batch, self.heads, queries, self.dim)
        key, value = (self.random(batch, self.kv_heads, keys, self.dim) for _ in range(2))
        return self.time(partial(scaled_dot_product_attention, query, key, value, is_causal=causal, enable_gqa=True))

    def time(self, function: Callable[[], object]) -> float:
        """Seconds per call; on a GPU from a graph of several calls."""

        def several() -> None:
            for _ in range(_CALLS):
                function()

        if not self.device.startswith("cuda"):
            return seconds(several, self.device, self.repeats) / _CALLS
        function()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            several()
        return seconds(graph.replay, self.device, self.repeats) / _CALLS

    def random(self, *shape: int) -> torch.Tensor:
        """Normal numbers in the benchmark's precision."""
        return torch.randn(shape, dtype=self.dtype, device=self.device)

    def copy_rate(self, size: int) -> float:
        """Bytes read and written per second by a copy of `size` bytes."""
        source = torch.empty(size, dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        return 2 * size / self.time(partial(target.copy_, source))

    def product_rate(self, size: int) -> float:
        """Operations per second of a matrix product of this size."""
        one, other = self.random(size, size), self.random(size, size)
        return 2 * size**3 / self.time(partial(torch.matmul, one, other))


def decode_rows(batch: int, units: int, unit_tokens: int, context: int, shared: bool) -> tuple[list[ForwardRow], int]:
    """Rows of one token, and the slots that they take; block 0 stays out."""
    rows, free = [], _BLOCK

    def take(length: int) -> IntArray:
        nonlocal free
        slots = np.arange(free, free + length)
        free += -(-length // _BLOCK) * _BLOCK
        return slots

    memory = tuple(take(unit_tokens) for _ in range(units))
    for number in range(batch):
        if number and not shared:
            memory = tuple(take(unit_tokens) for _ in range(units))
        rows.append(ForwardRow([0], 0, take(context), memory, (1.0,) * units))
    return rows, free


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__)
    size = pick_size(arguments)
    bench = Bench(size.model, getattr(torch, size.dtype), arguments.device, arguments.repeats)
    on_gpu = arguments.device.startswith("cuda") and not arguments.smoke
    batches, context = ((1, 8, 32, 64), 1024) if on_gpu else ((1,) if arguments.smoke else (1, 8), 256)
    ceiling = bench.copy_rate(1 << 30 if on_gpu else 1 << 22)
    peak = bench.product_rate(8192 if on_gpu else 256)
    figures: dict[str, float] = {"copy_gb_per_s": round(ceiling / 1e9, 1), "product_tflops": round(peak / 1e12, 2)}
    keys = size.units * size.unit_tokens + context
    for batch in batches:
        rows, num_slots = decode_rows(batch, size.units, size.unit_tokens, context, shared=False)
        own = bench.attention(rows, num_slots)
        shared = bench.attention(*decode_rows(batch, size.units, size.unit_tokens, context, shared=True))
        num_bytes = 2 * batch * keys * bench.kv_heads * bench.dim * bench.dtype.itemsize
        figures[f"decode_us_batch_{batch}"] = round(own * 1e6, 1)
        figures[f"decode_of_copy_rate_batch_{batch}"] = round(num_bytes / own / ceiling, 3)
        figures[f"decode_over_sdpa_batch_{batch}"] = round(bench.dense(batch, 1, keys, False) / own, 2)
        figures[f"shared_units_speedup_batch_{batch}"] = round(own / shared, 2)
    tokens = 4096 if on_gpu else 64
    run = ForwardRow([0] * tokens, 0, np.arange(_BLOCK, _BLOCK + tokens))
    prefill = bench.attention([run], tokens + _BLOCK)
    # Two products of tokens x tokens / 2 x dim, of two operations each.
    operations = 2 * bench.heads * bench.dim * tokens * (tokens + 1)
    figures[f"prefill_of_product_rate_tokens_{tokens}"] = round(operations / prefill / peak, 3)
    figures[f"prefill_over_sdpa_tokens_{tokens}"] = round(bench.dense(1, tokens, tokens, True) / prefill, 2)
    settings = {"shape": size.name, "dtype": size.dtype, "units": size.units, "unit_tokens": size.unit_tokens}
    report("attention", arguments, settings | {"context": context}, figures)


if __name__ == "__main__":
    main()
