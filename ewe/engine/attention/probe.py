"""What a model's attention asks for, found out by running it once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ewe.errors import UnsupportedModelError

_PROBE_TOKENS = 2
# What the mask function returns for a pattern that is neither causal nor a sliding window.
UNKNOWN_MASK = -1
# Tensors that models hand down and that attention may ignore: positions are in the queries and keys already.
_HARMLESS_TENSORS = frozenset(
    {"position_ids", "position_embeddings", "cache_position", "cu_seq_lens_q", "cu_seq_lens_k"}
)


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """One attention layer: head counts, head widths, sliding window (tokens; None: none), and what scales and caps its
    logits (see `LayerCall`).
    """

    num_heads: int
    num_kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None
    scale: float
    softcap: float | None


class Probe:
    """Stands in for a step's metadata during a probing forward, and notes what each layer passes.

    keys: each layer's keys [1, Hkv, tokens, Dk].
    """

    def __init__(self) -> None:
        self.layers: dict[int, AttentionLayer] = {}
        self.keys: list[torch.Tensor] = []

    def attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        scaling: float | None,
        softcap: float | None,
        others: Mapping[str, Any],
    ) -> torch.Tensor:
        """Notes the layer; returns zeros of the attention's shape [1, T, Hq, Dv]. Raises UnsupportedModelError."""
        number = getattr(module, "layer_idx", None)
        if not isinstance(number, int) or number in self.layers:
            raise UnsupportedModelError(f"its attention layers cannot be told apart (layer_idx {number})")
        if mask is None or mask.dtype != torch.int64 or mask.shape != (1, 1, 1, 1):
            raise UnsupportedModelError("it builds attention masks of its own, outside transformers' mask registry")
        if key.shape[2] != _PROBE_TOKENS or query.shape[1] % key.shape[1]:
            raise UnsupportedModelError("its keys and values are not those of its tokens")
        if mask.item() == UNKNOWN_MASK:
            raise UnsupportedModelError("its mask is neither causal nor a sliding window (bidirectional, prefix, ...)")
        _check_others(others)
        window = int(mask.item()) or None
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        self.layers[number] = AttentionLayer(
            query.shape[1], key.shape[1], key.shape[3], value.shape[3], window, scale, softcap
        )
        self.keys.append(key)
        return query.new_zeros(1, query.shape[2], query.shape[1], value.shape[3])


def _check_others(others: Mapping[str, Any]) -> None:
    if others.get("is_causal") is False:
        raise UnsupportedModelError("its attention is not causal")
    for name, item in others.items():
        if torch.is_tensor(item) and name not in _HARMLESS_TENSORS:
            raise UnsupportedModelError(f"its attention takes {name!r}, which the ewe attention would ignore")


_known: WeakKeyDictionary[torch.nn.Module, list[AttentionLayer]] = WeakKeyDictionary()


def attention_layers(model: Any) -> list[AttentionLayer]:
    """The model's attention layers in order, from two forward passes of two tokens (remembered per model).

    model: a transformers causal LM with attn_implementation "ewe". Raises UnsupportedModelError, naming the model, if a
    layer does not go through the ewe attention or asks for more than it does, or if positions are not honoured.
    """
    if model not in _known:
        try:
            _known[model] = _probe(model)
        except UnsupportedModelError as error:
            raise UnsupportedModelError(f"{type(model).__name__}: {error}") from error
    return _known[model]


def _probe(model: Any) -> list[AttentionLayer]:
    text = model.config.get_text_config()
    # Two different tokens: the embedding of one of them may be the all-zero one of padding.
    tokens = torch.tensor([[text.vocab_size // 2, text.vocab_size // 2 + 1]], device=model.device)
    here, there = Probe(), Probe()
    with torch.inference_mode():
        for probe, start in ((here, 0), (there, 5)):
            positions = torch.arange(start, start + _PROBE_TOKENS, device=model.device)[None]
            model(input_ids=tokens, position_ids=positions, use_cache=False, ewe=probe)
    if sorted(here.layers) != list(range(text.num_hidden_layers)):
        raise UnsupportedModelError(
            f"{len(here.layers)} of its {text.num_hidden_layers} layers go through the ewe attention; all must"
        )
    if all(map(torch.equal, here.keys, there.keys)):
        raise UnsupportedModelError("its keys do not follow the positions that it is given")
    return [here.layers[number] for number in range(text.num_hidden_layers)]
