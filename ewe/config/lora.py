"""LoRA adapters in peft's format: merged into a model's weights when it is loaded, or read to stay apart from them."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME

from ewe.config.known_models import ADAPTER_WEIGHTS
from ewe.errors import ConfigError

_NAMED = 3  # tensors in a message
_OFF: tuple[Any, ...] = (None, False, "none", [])
_MORE = (
    *("use_dora", "use_qalora", "use_bdlora", "bias", "lora_bias", "modules_to_save", "layer_replication"),
    *("trainable_token_indices", "target_parameters", "alora_invocation_tokens", "arrow_config"),
)
# What the settings of an adapter say that only adds to the outputs of linear layers; other inits change the weights.
_PLAIN = dict.fromkeys(_MORE, _OFF) | {"init_lora_weights": (True, False, "gaussian")}


def merge_adapter(model: Any, folder: Path, dtype: torch.dtype) -> Any:
    """The model with W + scale * B A in place of every weight W that the adapter of `folder` changes.

    model: in float32, in which the sum is computed; afterwards the weights are cast to `dtype`. The adapter's own
    generation_config.json, if it has one, takes the place of the model's: it may end answers with other tokens. Raises
    ConfigError for an adapter of another kind, or of a model with other layers or shapes, naming them.
    """
    settings, tensors, generation = _read(folder)
    merged = _wrapped(model, folder, settings, tensors).merge_and_unload()
    if generation is not None:
        merged.generation_config = generation
    for parameter in merged.parameters():
        parameter.data = parameter.data.to(dtype)
    return merged


class LowRank(NamedTuple):
    """What an adapter adds to a linear layer's output: (x down) up, with down [in, r] and up [r, out], scale in it."""

    down: Tensor
    up: Tensor


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter apart from the weights; layers: by the names of the modules. eos_token_ids: what ends its answers,
    beside the model's own.
    """

    layers: Mapping[str, LowRank]
    eos_token_ids: tuple[int, ...]


def read_adapter(model: Any, folder: Path) -> Adapter:
    """The adapter of `folder` for a model, which is left as it is, in the model's precision, on the model's device.

    Raises ConfigError as `merge_adapter`, and for one that does more than add to the outputs of linear layers.
    """
    from peft.tuners.lora import LoraLayer

    settings, tensors, generation = _read(folder)
    if more := [name for name in _PLAIN if getattr(settings, name, None) not in _PLAIN[name]]:
        raise _misfit(folder, model, f"with {', '.join(more)} it can only be merged: name it in model.adapter")
    wrapped = _wrapped(model, folder, settings, tensors)
    adapted = {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}
    output = model.get_output_embeddings()
    layers = {name: _low_rank(module, model.dtype) for name, module in adapted.items() if module.lora_A}
    wrapped.unload()
    if len(layers) < len(adapted) or output is not model.get_output_embeddings():
        raise _misfit(folder, model, "it changes an embedding or the output layer: name it in model.adapter")
    if any(".experts." in name for name in layers):
        raise _misfit(folder, model, "experts see some tokens of a pass only: name it in model.adapter")
    ends = () if generation is None else generation.eos_token_id or ()
    return Adapter(layers, tuple(ends) if isinstance(ends, Iterable) else (ends,))


def _low_rank(module: Any, dtype: torch.dtype) -> LowRank:
    [name] = module.lora_A
    down, up = module.lora_A[name].weight.detach().t(), module.lora_B[name].weight.detach().t()
    return LowRank(down.to(dtype).contiguous(), (up * module.scaling[name]).to(dtype).contiguous())


def _wrapped(model: Any, folder: Path, settings: Any, tensors: dict[str, Tensor]) -> Any:
    """peft's model around a model, with the adapter in it."""
    from peft import get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict

    embeddings = model.get_input_embeddings(), model.get_output_embeddings()
    try:
        # peft reads an attribute that transformers has renamed, which says nothing to whoever loads an adapter.
        with torch.random.fork_rng(), warnings.catch_warnings(action="ignore", category=FutureWarning):
            wrapped = get_peft_model(model, settings)
    except ValueError as error:
        raise _misfit(folder, model, str(error)) from error
    tied = getattr(model.config, "tie_word_embeddings", False)
    if tied and embeddings != (model.get_input_embeddings(), model.get_output_embeddings()):
        raise _misfit(folder, model, "it changes the input or output embedding, and the model uses one tensor for both")
    _refuse_misfit(folder, model, get_peft_model_state_dict(wrapped, save_embedding_layers=False), tensors)
    set_peft_model_state_dict(wrapped, tensors)
    return wrapped


def _read(folder: Path) -> tuple[Any, dict[str, Tensor], GenerationConfig | None]:
    """The settings and the tensors of an adapter, and how answers end under it if it says so."""
    from peft import LoraConfig, PeftConfig

    try:
        settings = PeftConfig.from_pretrained(str(folder))
        tensors = load_file(folder / ADAPTER_WEIGHTS)
        says = (folder / GENERATION_CONFIG_NAME).is_file()
        generation = GenerationConfig.from_pretrained(str(folder)) if says else None
    except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
        raise ConfigError(f"cannot read the adapter in {folder}: {error}") from error
    if not isinstance(settings, LoraConfig):
        raise ConfigError(f"the adapter in {folder} is no LoRA adapter but {type(settings).__name__}")
    settings.base_model_name_or_path = None  # The folder is another on every machine; peft would warn of it.
    return settings, tensors, generation


def _refuse_misfit(folder: Path, model: Any, expected: Mapping[str, Tensor], actual: Mapping[str, Tensor]) -> None:
    unknown, missing = actual.keys() - expected.keys(), expected.keys() - actual.keys()
    if unknown:
        raise _misfit(folder, model, f"the model has no place for {_some(unknown)}")
    if missing:
        raise _misfit(folder, model, f"it lacks {_some(missing)}")
    shapes = [
        f"{name} is {list(actual[name].shape)}, needed is {list(tensor.shape)}"
        for name, tensor in expected.items()
        if actual[name].shape != tensor.shape
    ]
    if shapes:
        raise _misfit(folder, model, _some(shapes))


def _misfit(folder: Path, model: Any, reason: str) -> ConfigError:
    return ConfigError(f"the adapter in {folder} does not fit this {type(model).__name__}: {reason}")


def _some(items: Iterable[str]) -> str:
    listed = sorted(items)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
