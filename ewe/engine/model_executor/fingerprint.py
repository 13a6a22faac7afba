"""What tells one model with its settings from another, as far as the KV of units depends on them."""

import json
from hashlib import sha256
from typing import Any

import torch

from ewe.config import MemoryConfig
from ewe.engine.kvcache.digest import digest
from ewe.engine.model_executor.model_runner import layer_shapes
from ewe.engine.models.loader import LoadedModel
from ewe.engine.units.unit_files import UnitIdentity

# They change from place to place and leave every key and value as it is; the precision is compared on its own.
_NOT_COMPUTED_WITH = {"_name_or_path", "_attn_implementation", "dtype", "transformers_version", "use_cache"}
_STATE_OF_USE = {"padding", "truncation"}


def identity_of(
    loaded: LoadedModel, memory: MemoryConfig, cache_dtype: str = "auto", prefix: tuple[int, ...] = ()
) -> UnitIdentity:
    """What units are made for that this model encodes under these settings after `prefix`; reads every weight once."""
    model = loaded.model
    parts = getattr(model, "tp_size", None) or 1
    return UnitIdentity(
        weights=weights_digest(model),
        config=_of_json(_without(model.config.to_dict(), _NOT_COMPUTED_WITH)),
        tokenizer=_of_json(_tokenizer(loaded.tokenizer)),
        unit_template=memory.unit_template,
        unit_tokens=memory.unit_tokens,
        dtype=str(model.dtype).removeprefix("torch."),
        layers=tuple((parts * shape.num_kv_heads, shape.key_dim, shape.value_dim) for shape in layer_shapes(model)),
        cache_dtype=cache_dtype,
        prefix=prefix,
    )


def weights_digest(model: Any) -> str:
    """64 hex digits over the names and bits of all weights; of a sharded model, every process has to call it."""
    state = model.state_dict()
    names = sorted(state)
    return sha256("\n".join((*names, digest(_whole(model, name, state[name]) for name in names))).encode()).hexdigest()


def _whole(model: Any, name: str, tensor: Any) -> torch.Tensor:
    """The tensor, its parts in other processes included, read from where `model.device_map` keeps it."""
    if tensor.is_meta:
        from transformers.integrations.accelerate import load_offloaded_parameter

        tensor = load_offloaded_parameter(model, name)
    whole: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def _tokenizer(tokenizer: Any) -> Any:
    """All that decides which tokens a text becomes."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return _without(json.loads(backend.to_str()), _STATE_OF_USE)
    return [sorted(tokenizer.get_vocab().items()), tokenizer.special_tokens_map]


def _without(value: Any, names: set[str]) -> Any:
    """A configuration without these entries, at every depth."""
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


def _of_json(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
