"""A model's layers through torch.compile, which fuses what stands between the matrix products.

The first passes take up to a minute longer.
"""

import logging
from typing import Any

import torch
from transformers import AttentionInterface

from ewe.engine.attention.ewe_attention import NAME, ewe_attention

_log = logging.getLogger(__name__)


def decoder_layers(model: Any) -> list[Any]:
    """The model's layers in order; empty if it does not tell which modules they are."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    return [module for module in model.modules() if type(module).__name__ in names]


def compile_layers(model: Any) -> None:
    """Has every decoder layer compiled at its first call, for any number of tokens; results change by rounding only.

    A model that does not tell its layers is left as it is, with a line in the log.
    """
    layers = decoder_layers(model)
    if not layers:
        _log.warning("model.compile does nothing: %s does not tell which modules its layers are", type(model).__name__)
        return
    AttentionInterface.register(NAME, torch.compiler.disable(ewe_attention))  # type: ignore[no-untyped-call]
    for layer in layers:
        layer.compile(dynamic=True)


def undo_compile(model: Any) -> None:
    """Has the layers run as they are again."""
    for module in model.modules():
        module._compiled_call_impl = None
