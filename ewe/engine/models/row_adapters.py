"""LoRA adapters that are applied to the rows of a pass that name them, while all rows share the model's weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ewe.config.lora import Adapter, LowRank
from ewe.engine.attention.metadata import PlacedRow
from ewe.engine.attention.packed import to_device


class RowAdapters:
    """The adapters of one model by name, which are in its layers from now on; rows without one run as before.

    Layers that are compiled, or captured in a CUDA graph while `applied` is not in use, run without adapters.
    """

    def __init__(self, model: Any, adapters: Mapping[str, Adapter]) -> None:
        self.eos_token_ids = {name: adapter.eos_token_ids for name, adapter in adapters.items()}
        self.tokens: list[tuple[str, Tensor]] = []
        for module_name in dict.fromkeys(name for adapter in adapters.values() for name in adapter.layers):
            layer = model.get_submodule(module_name)
            device = layer.weight.device
            layer.low_ranks = {
                name: LowRank(*(part.to(device) for part in adapter.layers[module_name]))
                for name, adapter in adapters.items()
                if module_name in adapter.layers
            }
            layer.row_adapters, layer.__class__ = self, _class(layer.__class__)

    @contextmanager
    def applied(self, rows: Sequence[PlacedRow], device: torch.device) -> Iterator[None]:
        """Inside, the model's layers take the tokens of these rows for their inputs, and each adapter its own."""
        places: dict[str, list[np.ndarray]] = {}
        for item in rows:
            if item.row.adapter:
                places.setdefault(item.row.adapter, []).append(np.arange(item.begin, item.end))
        moved = to_device({name: np.concatenate(parts) for name, parts in places.items()}, device) if places else {}
        self.tokens = list(moved.items())
        try:
            yield
        finally:
            self.tokens = []


class _WithAdapters:
    """Comes before a linear layer's class."""

    low_ranks: Mapping[str, LowRank]
    row_adapters: RowAdapters

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] to [..., out]."""
        output: Tensor = super().forward(x)  # type: ignore[misc]
        for name, tokens in self.row_adapters.tokens:
            if name in self.low_ranks:
                down, up = self.low_ranks[name]
                rows = x.reshape(-1, x.shape[-1]).index_select(0, tokens)
                output.view(-1, output.shape[-1]).index_add_(0, tokens, rows @ down @ up)
        return output


@cache
def _class(original: type) -> Any:
    return type(original.__name__, (_WithAdapters, original), {})
