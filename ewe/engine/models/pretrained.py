"""What transformers reads of a model's files; the tokenizer alone, for who has no use for the weights."""

import struct
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import AutoTokenizer

from ewe.config import ModelConfig
from ewe.engine.models.model_files import ModelSource, has_tokenizer, model_source
from ewe.errors import ConfigError

_FAILURES: tuple[type[Exception], ...] = (OSError, ValueError, RuntimeError, ImportError, SafetensorError)
# A GGUF file that lacks something (a tokenizer, its end) makes transformers stumble rather than say so.
_GGUF_FAILURES = (*_FAILURES, LookupError, TypeError, AttributeError, ArithmeticError, struct.error)


def load_tokenizer(config: ModelConfig) -> Any:
    """The tokenizer of the model that `config` names; None for load_format "dummy" without tokenizer files.

    Raises ConfigError if it cannot be read.
    """
    source = model_source(config)
    place = Path(source.place)
    if config.load_format == "dummy" and source.gguf_file is None and (place.is_file() or not has_tokenizer(place)):
        return None
    return read_pretrained(AutoTokenizer, source, pretrained_options(config))


def pretrained_options(config: ModelConfig) -> dict[str, Any]:
    """The arguments that every `from_pretrained` gets."""
    return {"revision": config.revision, "trust_remote_code": False}


def read_pretrained(auto_class: Any, source: ModelSource, options: dict[str, Any], **more: Any) -> Any:
    """`auto_class.from_pretrained`, its failures as ConfigError."""
    failures = _FAILURES
    if source.gguf_file is not None:
        options, failures = {**options, "gguf_file": source.gguf_file}, _GGUF_FAILURES
    try:
        return auto_class.from_pretrained(source.place, **options, **more)
    except failures as error:
        raise ConfigError(
            f"cannot load {auto_class.__name__.removeprefix('Auto')} from {str(source)!r}: {error} (model.name is "
            f'"builtin", a directory, a GGUF file or a hub id; weights must be safetensors or GGUF)'
        ) from error
