"""The judge that comes with the package: a small cross-encoder with int8 weights.

Layout of the folder: `config.json` (transformers' configuration with id2label), `model.safetensors` (the temperature
that calibrates the probabilities is in the classifier), the tokenizer's files (`model_max_length` in tokens per pair)
and README.md, the card. Of the weights a matrix `NAME` is stored as int8 [rows, columns] under its name, with float32
[rows] under `NAME.scale`: matrix[r] = int8[r] * scale[r]. Everything else (biases, layer norms, small matrices) is a
float under its name.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ewe.config.loading import WEIGHTS_LOCK, import_transformers
from ewe.errors import JudgeError
from ewe.text.packed_bert import BertShape
from ewe.text.word_pieces import WordPieces
from ewe.verification.judges.checkpoints import Head, builtin_path, check_builtin, read_head
from ewe.verification.judges.cross_encoder import CrossEncoderJudge, choose_device, multiplies_bfloat16
from ewe.verification.judges.packed_classifier import PackedClassifier

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


def read_model(folder: Path) -> tuple[Any, Any]:
    """The model of a folder in this layout, in float32 on the CPU, and its tokenizer; raises what transformers does."""
    import_transformers()
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.initialization import no_init_weights

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    with WEIGHTS_LOCK, no_init_weights():
        model: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    model.load_state_dict(load_int8(folder / "model.safetensors"))
    return model, tokenizer


def read_packed(folder: Path, trained: Mapping[str, Tensor] | None = None) -> tuple[PackedClassifier, WordPieces, Head]:
    """The model of a folder in this layout for CPUs, its tokenizer and its head, without transformers.

    trained: weights in place of the folder's. Raises OSError, ValueError or KeyError for files that hold no such model,
    and JudgeError as `load_int8` does.
    """
    config = json.loads((folder / "config.json").read_bytes())
    head = read_head({int(index): text for index, text in config["id2label"].items()}, _NAME)
    weights = load_int8(folder / "model.safetensors") | dict(trained or {})
    bfloat16 = multiplies_bfloat16(PackedClassifier.device)
    model = PackedClassifier(weights, BertShape.of(config), len(config["id2label"]), bfloat16)
    return model, WordPieces(folder), head


def load_further(weights: Path, name: str, max_tokens: int) -> CrossEncoderJudge:
    """The built-in judge trained further, for CPUs: what the file of weights lacks is the package's own judge's.

    name: of the new judge; max_tokens: of both texts. Raises JudgeError if the weights cannot be read.
    """
    model, pieces, _ = read_packed(builtin_path(), load_int8(weights))
    return CrossEncoderJudge(model, pieces, Head((0, 1, 2)), name, max_tokens)


_NAME = "builtin"


def load_builtin(device: str = "auto", folder: Path | None = None) -> CrossEncoderJudge:
    """The built-in judge, or one of the same layout in `folder`. Raises JudgeError if it is missing or damaged."""
    folder = folder or builtin_path()
    check_builtin(folder)
    place = choose_device(device)
    try:
        if place.type == "cpu":
            packed, pieces, head = read_packed(folder)
            return CrossEncoderJudge(packed, pieces, head, _NAME, pieces.model_max_length)
        model, tokenizer = read_model(folder)
        head = read_head(model.config.id2label, _NAME)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise JudgeError(f"the built-in judge in {folder} is damaged: {error}") from error
    return CrossEncoderJudge(model.to(place), tokenizer, head, _NAME, tokenizer.model_max_length)
