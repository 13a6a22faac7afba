"""Where transformers finds a chat model that a training script was given."""

from __future__ import annotations

from pathlib import Path


def place_of(model: Path) -> dict[str, str]:
    """What `from_pretrained` takes for a model folder or a GGUF file."""
    if model.suffix == ".gguf":
        return {"pretrained_model_name_or_path": str(model.parent), "gguf_file": model.name}
    return {"pretrained_model_name_or_path": str(model)}
