"""The division of the device's memory: what is left is the pool's, what does not fit is refused with the budget."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from e2e.llm_rig import loaded
from parity.families import build
from torch.profiler import ProfilerActivity, profile

from ewe.config import Config
from ewe.engine.kvcache.pool import KVPool, TokenStates
from ewe.engine.model_executor.model_runner import ForwardRow, ModelRunner, layer_shapes
from ewe.engine.models.loader import LoadedModel
from ewe.engine.startup import budget as module
from ewe.engine.startup.budget import MemoryBudget, estimate_activations, make_pool, plan_memory
from ewe.errors import ConfigError, DeviceMemoryError

GIB = 1 << 30


class OnGPU:
    """A model's outside, as if it were on a GPU: all that a budget looks at."""

    device = torch.device("cuda", 0)

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def plan(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], free: int, total: int, gpu: bool = True
) -> MemoryBudget:
    monkeypatch.setattr(module, "_device_memory", lambda device: (free, total))
    own = loaded()
    model = OnGPU(own.model) if gpu else own.model
    config = Config.from_mapping(settings)
    return plan_memory(config, LoadedModel(model, None, 400, frozenset(), own.vocab_size), layer_shapes(own.model))


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_on_a_gpu_the_pool_gets_what_its_share_leaves(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    free, total = 6 * GIB, 8 * GIB
    budget = plan(monkeypatch, {"cache": {"gpu_share": share}}, free, total)
    taken = total - free + budget.activations + budget.pool
    assert share * total - budget.block_bytes < taken <= share * total
    assert budget.activations > 0


@pytest.mark.parametrize(
    ("scheduler", "memory", "places"),
    [
        ({}, {}, 128),
        ({"max_num_seqs": 3}, {}, 3),
        ({"max_num_batched_tokens": 300}, {"unit_tokens": 200}, 100),  # the rest of a pass is a unit's
    ],
)
def test_on_a_gpu_more_sequences_run_at_once_unless_the_settings_say_how_many(
    scheduler: dict[str, int], memory: dict[str, int], places: int
) -> None:
    config = Config.from_mapping({"scheduler": scheduler, "memory": memory})
    assert config.scheduler.places == (scheduler.get("max_num_seqs") or 16)
    assert config.on_gpu().scheduler.places == places


def test_weights_that_lie_elsewhere_take_room_on_their_way_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded().model
    whole = plan(monkeypatch, {}, 6 * GIB, 8 * GIB, gpu=False)
    moved = next(module for module in model.modules() if isinstance(module, torch.nn.Linear))
    with monkeypatch.context() as patch:
        patch.setitem(moved._parameters, "weight", torch.nn.Parameter(moved.weight.to("meta")))
        spread = plan(monkeypatch, {}, 6 * GIB, 8 * GIB, gpu=False)
    assert whole.weights - spread.weights == spread.activations - whole.activations == moved.weight.nbytes


@pytest.mark.parametrize(("cache", "pool"), [({"memory_gib": 0.5}, GIB // 2), ({}, GIB), ({"num_blocks": 10}, None)])
def test_without_a_gpu_the_pool_is_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, Any], pool: int | None
) -> None:
    budget = plan(monkeypatch, {"cache": cache}, 64 * GIB, 64 * GIB, gpu=False)
    if pool is None:
        assert budget.blocks == 11
    else:
        assert pool - budget.block_bytes < budget.pool <= pool


def test_a_host_with_little_memory_gives_half_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = plan(monkeypatch, {}, GIB // 2, 64 * GIB, gpu=False)
    assert budget.pool <= GIB // 4 < budget.pool + budget.block_bytes


def test_the_lines_name_what_takes_memory_and_what_decides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"unit_tokens": 40, "retrieval_units": 3, "verification_units": 0, "precomputed": "units"}
    settings = {"memory": memory, "cache": {"memory_gib": 1.0, "host_gib": 2.0}}
    budget = plan(monkeypatch, settings, 6 * GIB, 8 * GIB)
    text = "\n".join(budget.lines())
    unit_mib = 3 * 3 * budget.block_bytes / (1 << 20)
    for part in (
        *("weights: ", "activations: about ", "KV pool: 1024.0 MiB", f"units: up to {unit_mib:.1f} MiB of the pool"),
        *("3 units in 9 blocks", "2048.0 MiB of host memory", "8192.0 MiB on cuda:0"),
        *("model.dtype", "scheduler.max_num_batched_tokens", "cache.memory_gib", "cache.host_gib", "cache.gpu_share"),
    ):  # fmt: skip
        assert part in text
    assert budget.summary() == "; ".join(budget.lines())
    on_cpu = "\n".join(plan(monkeypatch, settings, 6 * GIB, 8 * GIB, gpu=False).lines())
    assert "host_gib" not in on_cpu
    assert "gpu_share" not in on_cpu


@pytest.mark.parametrize(
    ("cache", "free", "said"),
    [
        ({"memory_gib": 7.0}, 6 * GIB, "wants 716"),
        ({"num_blocks": 10_000_000}, 6 * GIB, "has 6144.0 MiB free"),
        ({}, GIB // 2, "no room for one block"),
        ({"memory_gib": 1e-9}, 6 * GIB, "no room for one block"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_budget(
    monkeypatch: pytest.MonkeyPatch, cache: dict[str, Any], free: int, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(monkeypatch, {"cache": cache}, free, 8 * GIB)
    assert said in str(caught.value)
    for part in ("weights: ", "activations: ", "KV pool: ", "cache.memory_gib"):
        assert part in str(caught.value)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_a_pool_that_cannot_be_allocated_is_told_with_the_budget(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def refuse(*_: object) -> None:
        raise error("out of memory")

    budget = plan(monkeypatch, {"cache": {"num_blocks": 4}}, 6 * GIB, 8 * GIB, gpu=False)
    monkeypatch.setattr(module, "KVPool", refuse)
    with pytest.raises(DeviceMemoryError, match=r"cache\.num_blocks.*The budget was weights"):
        make_pool(budget, layer_shapes(loaded().model), torch.float32)


@pytest.mark.parametrize("family", ["llama", "qwen3", "phi"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_estimate_is_what_a_pass_takes(family: str, dtype: torch.dtype) -> None:
    """Peak of the memory that torch allocates in a pass, against the estimate for as many tokens."""
    tokens = 256
    model = build(family, dtype)
    pool = KVPool(layer_shapes(model), 1 + tokens // 16, 16, dtype, "cpu")
    runner = ModelRunner(model, pool, "paper")
    slots = torch.arange(16, 16 + tokens).numpy()
    rows = [ForwardRow(list(range(3, 67)), 0, slots[i : i + 64], wants_logits=False) for i in range(0, tokens, 64)]
    runner.forward(rows)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        runner.forward(rows)
    events = seen.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    now = peak = 0
    for _, change in changes:
        now += change
        peak = max(peak, now)
    scheduler = {"max_num_batched_tokens": tokens, "max_num_seqs": 1}
    config = Config.from_mapping({"scheduler": scheduler, "memory": {"unit_tokens": 8}})
    estimated = estimate_activations(config, LoadedModel(model, None, 400, frozenset(), 97))
    assert 0.5 < estimated / peak < 2


def test_what_is_kept_of_every_token_is_counted() -> None:
    config = Config.from_mapping({"cache": {"num_blocks": 10}, "scheduler": {"max_num_seqs": 2}})
    shapes = layer_shapes(loaded().model)
    plain, queries, hidden = (
        plan_memory(config, loaded(), shapes, kept)
        for kept in (None, TokenStates("queries", 10, torch.float32), TokenStates("hidden", 10, torch.float32))
    )
    assert queries.block_bytes == hidden.block_bytes == plain.block_bytes + 10 * 4 * config.cache.block_size
    assert queries.activations == plain.activations
    # Each answer holds the hidden states of the passages that it may copy from.
    copies = 2 * config.feedback.nest_passages * config.memory.unit_tokens
    assert hidden.activations == plain.activations + copies * 10 * 4
    pool = make_pool(hidden, shapes, torch.float32, TokenStates("hidden", 10, torch.float32))
    assert pool.states is not None
    assert pool.states.shape == (hidden.blocks * config.cache.block_size, 10)
