"""GGUF files, the format of llama.cpp: read by transformers, their weights widened to ordinary tensors.

Nothing computes with the blocks of such a file: a model that was read from one is like any other, and as large.
"""

from pathlib import Path
from typing import Any

import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.config.loading import WEIGHTS_LOCK, LoadStep

_MIB = 1 << 20


def widening() -> dict[str, Any]:
    """Arguments of `from_pretrained` under which no weight stays quantised and the model does not claim that any is.

    Older transformers widen by themselves.
    """
    make: Any = getattr(transformers, "GgufConfig", None)
    return {} if make is None else {"quantization_config": make(dequantize=True)}


def read_gguf(file: Path) -> tuple[Any, Any]:
    """The causal language model of a file in float32, on the CPU, and its tokenizer."""
    named = {"gguf_file": file.name}
    with WEIGHTS_LOCK:
        model = AutoModelForCausalLM.from_pretrained(file.parent, dtype="float32", **named, **widening())
    return model, AutoTokenizer.from_pretrained(file.parent, **named)


def cost_of_widening(model: Any, file: Path) -> LoadStep:
    """What to tell of a model that was widened: its file's size, and that of its weights now."""
    weights = sum(item.numel() * item.element_size() for item in model.parameters())
    dtype = str(model.dtype).removeprefix("torch.")
    return LoadStep(
        f"widened {file.name} from {file.stat().st_size / _MIB:.0f} MiB to {weights / _MIB:.0f} MiB of {dtype}"
    )
