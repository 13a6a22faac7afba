"""Reading weights that are stored as int8 with one scale per row, in one safetensors file.

Layout: a matrix `NAME` is stored as int8 [rows, columns] under its name, with float32 [rows] under `NAME.scale`:
matrix[r] = int8[r] * scale[r]. Everything else (biases, layer norms, small matrices) is a float under its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ewe.errors import JudgeError

_SCALE = ".scale"


def dequantise(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a layout in float32; raises JudgeError for an int8 matrix without fitting scales."""
    weights: dict[str, Tensor] = {}
    for name, stored in packed.items():
        if name.endswith(_SCALE) and name.removesuffix(_SCALE) in packed:
            continue
        weights[name] = stored.float()
        if stored.dtype == torch.int8:
            scale = packed.get(name + _SCALE)
            if scale is None or scale.shape != stored.shape[:1]:
                raise JudgeError(f"the int8 weights {name} have no scale per row")
            weights[name] *= scale.float()[:, None]
    return weights


def load_int8(path: Path) -> dict[str, Tensor]:
    """The weights of a file in this layout, in float32; raises JudgeError naming a file that cannot be read."""
    try:
        return dequantise(load_file(path))
    except (OSError, SafetensorError) as error:
        raise JudgeError(f"cannot read the judge's weights {path}: {error}") from error
