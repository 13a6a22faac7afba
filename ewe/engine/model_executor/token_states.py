"""What is kept of every token beside its keys and values, for policies that look inside the model."""

from typing import Any, Literal

import torch
from torch.utils.hooks import RemovableHandle

from ewe.engine.attention.ewe_attention import StepMetadata
from ewe.engine.attention.probe import AttentionLayer
from ewe.engine.kvcache.pool import TokenStates
from ewe.engine.models.compiled import decoder_layers
from ewe.errors import UnsupportedModelError


def token_states(kind: Literal["hidden", "queries"], model: Any, layers: list[AttentionLayer]) -> TokenStates:
    """What a pool for this model keeps of every token."""
    last = layers[-1]
    width = model.config.get_text_config().hidden_size if kind == "hidden" else last.num_heads * last.key_dim
    return TokenStates(kind, width, model.dtype)


def keep_hidden_states(model: Any) -> RemovableHandle:
    """Has the last layer's input, [T, hidden], kept in every pass over a pool that keeps it.

    Of the tuple that transformers returns it is `hidden_states[-2]`. Raises UnsupportedModelError for a model that does
    not tell its layers.
    """
    layers = decoder_layers(model)
    if not layers:
        raise UnsupportedModelError(f"{type(model).__name__} does not tell which modules its layers are")
    hook = torch.compiler.disable(_keep)  # type: ignore[no-untyped-call]
    handle: RemovableHandle = layers[-1].register_forward_pre_hook(hook, with_kwargs=True)
    return handle


def _keep(layer: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    step = options.get("ewe")
    if isinstance(step, StepMetadata) and step.keeps("hidden"):
        hidden = arguments[0] if arguments else options["hidden_states"]
        step.keep(hidden[0])
