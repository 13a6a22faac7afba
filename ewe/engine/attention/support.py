"""Which architectures the engine refuses by their settings, before any weight is read.

Learned absolute positions (GPT-2, OPT) are no reason: the context stands where it would stand after one unit, as text
that the model was trained on does.
"""

from collections.abc import Sequence
from typing import Any

from ewe.errors import UnsupportedModelError

_PAGED_LAYERS = frozenset({"full_attention", "sliding_attention"})


def refuse_unsupported(config: Any, model_class: type | None) -> None:
    """Raises UnsupportedModelError, naming the architecture and the reason, if the engine cannot honour its attention.

    config: the model's transformers configuration; model_class: its causal LM class, None if transformers has none.
    """
    if config.is_encoder_decoder:
        reason: str | None = "it is an encoder-decoder; the engine runs decoders only"
    elif model_class is None and not hasattr(config, "auto_map"):
        reason = "transformers knows no causal language model for it"
    else:
        reason = _reason(config.get_text_config(), model_class)
    if reason:
        names = getattr(config, "architectures", None) or [config.model_type]
        raise UnsupportedModelError(f"{names[0]}: {reason}")


def rope_settings(config: Any) -> list[dict[str, Any]]:
    """The rotary settings of a configuration, one mapping per kind of layer; empty without rotary positions."""
    settings = getattr(config.get_text_config(), "rope_parameters", None) or {}
    nested = [item for item in settings.values() if isinstance(item, dict)]
    return nested or ([settings] if settings else [])


def layer_configs(text: Any) -> Sequence[Any]:
    """The settings of every layer of a text configuration where they differ, else those of all layers, once."""
    return list(text.per_layer_config) if getattr(text, "is_heterogeneous", False) else [text]


def _reason(text: Any, model_class: type | None) -> str | None:
    strange = sorted(set(getattr(text, "layer_types", None) or ()) - _PAGED_LAYERS)
    if strange:
        return f"it has layers of type {', '.join(strange)}; only full and sliding-window attention can be paged"
    if getattr(model_class, "_is_stateful", False) and not getattr(text, "layer_types", None):
        return "it carries a recurrent state, which cannot be paged"
    if getattr(text, "kv_lora_rank", None):
        return "multi-head latent attention is not supported"
    if getattr(text, "num_kv_shared_layers", None):
        return "some of its layers use the keys and values of other layers"
    if getattr(text, "attn_temperature_tuning", False):
        return "it scales queries by their place in the batch (attn_temperature_tuning), not by their position"
    if getattr(text, "alibi", False):
        return "ALiBi biases depend on absolute distances, which memory units do not have"
    if getattr(text, "is_causal", True) is False or getattr(text, "use_bidirectional_attention", False) is True:
        return "its attention is not causal"
    if any(item.get("rope_type") == "dynamic" for item in rope_settings(text)):
        return "dynamic NTK rotary scaling changes the keys of all sequences with the longest one in the batch"
    if model_class is not None and not getattr(model_class, "_supports_attention_backend", False):
        return "its attention does not go through transformers' attention registry"
    return None
