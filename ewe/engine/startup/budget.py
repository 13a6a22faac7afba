"""How the memory of the model's device is divided: weights, activations, the KV pool with its units, the rest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psutil
import torch

from ewe.config import CacheConfig, Config
from ewe.engine.attention.support import layer_configs
from ewe.engine.kvcache.fp8 import FP8
from ewe.engine.kvcache.pool import KVPool, LayerShape, TokenStates
from ewe.engine.models.loader import LoadedModel
from ewe.errors import ConfigError, DeviceMemoryError

_CPU_POOL_BYTES = 1 << 30
# Logits, the copy that is adjusted, its sorted values and their log-softmax.
_LOGIT_COPIES = 4
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Bytes by what takes them on `device`; `blocks` of the KV pool include the null block.

    total, free: of the device, free beside the weights and before the pool is made. activations: of the largest forward
    pass, estimated. host_units: host memory that precomputed units may take beside a GPU.
    """

    device: torch.device
    total: int
    free: int
    weights: int
    activations: int
    blocks: int
    block_bytes: int
    block_size: int
    units: int
    unit_blocks: int
    host_units: int

    @property
    def pool(self) -> int:
        """Bytes of the KV pool."""
        return self.blocks * self.block_bytes

    def lines(self) -> Iterator[str]:
        """What takes how much, one line each, with the setting that decides it."""
        yield f"weights: {_mib(self.weights)} (model.dtype, model.weights)"
        yield f"activations: about {_mib(self.activations)} in the largest pass (scheduler.max_num_batched_tokens)"
        tokens = (self.blocks - 1) * self.block_size
        yield f"KV pool: {_mib(self.pool)}, {self.blocks - 1} blocks, {tokens} tokens (cache.memory_gib)"
        if self.units:
            units = self.units * self.unit_blocks
            yield (
                f"units: up to {_mib(units * self.block_bytes)} of the pool for one answer, {self.units} units in "
                f"{units} blocks (memory.unit_tokens)"
            )
        if self.host_units:
            yield f"precomputed units: up to {_mib(self.host_units)} of host memory (cache.host_gib)"
        if self.device.type == "cuda":
            left = max(0, self.free - self.pool - self.activations)
            yield f"left: {_mib(left)} of {_mib(self.total)} on {self.device} (cache.gpu_share)"

    def summary(self) -> str:
        """All of it in one line."""
        return "; ".join(self.lines())


def plan_memory(
    config: Config, loaded: LoadedModel, shapes: Sequence[LayerShape], kept: TokenStates | None = None
) -> MemoryBudget:
    """The division that the settings ask for, or that fits what is free; raises ConfigError if none does.

    kept: what the pool keeps of every token beside its keys and values.
    """
    model, cache, memory = loaded.model, config.cache, config.memory
    device: torch.device = model.device
    free, total = _device_memory(device)
    block_bytes = KVPool.bytes_per_block(shapes, cache.block_size, cache_dtype(cache, model.dtype))
    activations = estimate_activations(config, loaded) + _passing(model)
    if kept is not None:
        block_bytes += kept.num_bytes * cache.block_size
    if kept is not None and kept.kind == "hidden":  # each answer has a copy of those of its passages
        copies = config.scheduler.places * config.feedback.nest_passages * memory.unit_tokens
        activations += copies * kept.num_bytes
    on_gpu = device.type == "cuda"
    if cache.num_blocks is not None:
        blocks = cache.num_blocks + 1  # the null block holds no tokens
    elif cache.memory_gib is not None:
        blocks = int(cache.memory_gib * (1 << 30)) // block_bytes
    elif on_gpu:
        blocks = max(0, free - activations - int((1 - cache.gpu_share) * total)) // block_bytes
    else:
        blocks = min(_CPU_POOL_BYTES, free // 2) // block_bytes
    budget = MemoryBudget(
        device=device,
        total=total,
        free=free,
        weights=sum(
            _own_part(item).nbytes for item in (*model.parameters(), *model.buffers()) if item.device == device
        ),
        activations=activations,
        blocks=blocks,
        block_bytes=block_bytes,
        block_size=cache.block_size,
        units=memory.num_units,
        unit_blocks=-(-memory.unit_tokens // cache.block_size),
        host_units=int(cache.host_gib * (1 << 30)) if on_gpu and memory.precomputed is not None else 0,
    )
    _check(budget)
    return budget


def make_pool(
    budget: MemoryBudget,
    shapes: Sequence[LayerShape],
    dtype: torch.dtype,
    kept: TokenStates | None = None,
    new_pool: Callable[..., KVPool] | None = None,
) -> KVPool:
    """The KV pool of a budget; raises DeviceMemoryError if the device has no memory for it after all."""
    try:
        return (new_pool or KVPool)(shapes, budget.blocks, budget.block_size, dtype, budget.device, kept)
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError on a GPU
        raise DeviceMemoryError(
            f"there is no memory for the KV pool: lower cache.memory_gib or cache.num_blocks. The budget was "
            f"{budget.summary()}"
        ) from error


def cache_dtype(cache: CacheConfig, model_dtype: torch.dtype) -> torch.dtype:
    """What keys and values are kept in."""
    return FP8 if cache.dtype == "fp8_e4m3" else model_dtype


def estimate_activations(config: Config, loaded: LoadedModel) -> int:
    """Bytes that the largest forward pass takes beside weights and KV, for transformers' decoder layers.

    At its peak a layer holds per token about three tensors of the width of its MLP and four of the model's width, or of
    its queries' if that is larger; logits are computed for one token per sequence.
    """
    text: Any = loaded.model.config.get_text_config()
    hidden = text.hidden_size
    queries = [
        layer.num_attention_heads * (getattr(layer, "head_dim", None) or hidden // layer.num_attention_heads)
        for layer in layer_configs(text)
    ]
    width = max(hidden, *queries)
    inner = getattr(text, "intermediate_size", None) or 4 * hidden
    per_token: int = (3 * inner + 4 * width) * int(loaded.model.dtype.itemsize)
    per_row = loaded.vocab_size * torch.float32.itemsize * _LOGIT_COPIES
    return config.scheduler.max_num_batched_tokens * per_token + config.scheduler.places * per_row


def _passing(model: Any) -> int:
    """Bytes for weights that `model.device_map` keeps in host memory or on a disk: those of one module at a time."""
    return max(sum(int(item.nbytes) for item in one.parameters(False) if item.is_meta) for one in model.modules())


def _own_part(tensor: Any) -> torch.Tensor:
    """What this process has of a tensor, which may lie in several."""
    part: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def _check(budget: MemoryBudget) -> None:
    """Raise ConfigError for a pool without blocks, or one for which a GPU has no room."""
    if budget.blocks < 2:
        raise ConfigError(
            f"the KV pool has no room for one block of {_mib(budget.block_bytes)}: raise cache.memory_gib, or leave it "
            f"more with a smaller model, model.dtype or scheduler.max_num_batched_tokens. "
            f"The budget is {budget.summary()}"
        )
    if budget.device.type == "cuda" and budget.pool > budget.free:
        raise ConfigError(
            f"the KV pool wants {_mib(budget.pool)} and {budget.device} has {_mib(budget.free)} free: lower "
            f"cache.memory_gib or cache.num_blocks, or set neither. The budget is {budget.summary()}"
        )


def _device_memory(device: torch.device) -> tuple[int, int]:
    """Free and total bytes of a device; the host's for everything that is no CUDA GPU."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return free, total
    memory = psutil.virtual_memory()
    return memory.available, memory.total


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / _MIB:.1f} MiB"
