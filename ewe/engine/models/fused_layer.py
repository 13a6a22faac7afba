"""Decoder layers computed in about ten kernels instead of forty, for models that share Llama's structure.

Weights keep their names.
"""

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from ewe_kernels.gated import gated
from ewe_kernels.norm import add_normed, add_rms_norm, rms_norm
from torch import Tensor

from ewe.engine.attention.backend import Rotary
from ewe.engine.attention.ewe_attention import StepMetadata, plan_step, run_flat
from ewe.engine.attention.metadata import ForwardRow, place_rows
from ewe.engine.attention.probe import AttentionLayer, attention_layers
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.kvcache.pool import KVPool, LayerShape
from ewe.engine.models.fused_parts import AddedProduct, Norm, Parts, Products, norm_of, parts_of

_log = logging.getLogger(__name__)
_BLOCK = 16
_TRIAL_TOKENS = 3
# How far a fused layer may be from the layer, as a share of what the layer changes: rounding only.
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}


class FusedLayer:
    """One decoder layer; shape: of its attention."""

    def __init__(self, parts: Parts, shape: AttentionLayer) -> None:
        self._parts, self._scale, self._softcap = parts, shape.scale, shape.softcap
        self._number: int = parts.attention.layer_idx
        widths = shape.num_kv_heads * shape.key_dim, shape.num_kv_heads * shape.value_dim
        queries = sum(_rows(layer) for layer in parts.qkv) - sum(widths)
        self._heads = queries // shape.key_dim, shape.num_kv_heads, shape.num_kv_heads
        self._qkv = Products(parts.qkv, (queries, *widths))
        inner = sum(_rows(layer) for layer in parts.gate_up) // 2
        self._gate_up = Products(parts.gate_up, (inner, inner))
        self._add_attended, self._add_down = AddedProduct(parts.attention.o_proj), AddedProduct(parts.down)

    def run(self, hidden_states: Tensor, cos: Tensor, sin: Tensor, step: StepMetadata) -> Tensor:
        """hidden_states [1, T, n], which are changed in place and returned; cos, sin [T, R]."""
        parts, hidden = self._parts, hidden_states[0]
        (before, before_mlp), after = parts.before, parts.after
        normed = rms_norm(hidden, before.scale, before.eps)
        states = self._attend(normed, cos, sin, step)
        if after is None:
            self._add_attended(hidden, states)
            normed = rms_norm(hidden, before_mlp.scale, before_mlp.eps)
            self._add_down(hidden, self._activate(normed))
        else:
            change = parts.attention.o_proj(states)
            normed = add_rms_norm(hidden, change, before_mlp.scale, before_mlp.eps, after[0].scale)
            add_normed(hidden, parts.down(self._activate(normed)), after[1].scale, after[1].eps)
        return hidden_states

    def _attend(self, normed: Tensor, cos: Tensor, sin: Tensor, step: StepMetadata) -> Tensor:
        query, key, value = (
            part.view(len(part), heads, -1).transpose(0, 1)
            for part, heads in zip(self._qkv(normed), self._heads, strict=True)
        )
        heads = self._parts.heads
        rotary = Rotary(cos, sin) if heads is None else Rotary(cos, sin, heads[0].scale, heads[1].scale, heads[0].eps)
        return step.attend_layer(self._number, query, key, value, self._scale, self._softcap, rotary).flatten(1)

    def _activate(self, normed: Tensor) -> Tensor:
        gate, up = self._gate_up(normed)
        return gated(gate, up, self._parts.activation)


def _rows(layer: Any) -> int:
    rows: int = layer.weight.shape[0]
    return rows


class _Fused:
    """Comes before a layer's class: as before for whoever is not the engine over kernels."""

    fused: FusedLayer

    def forward(self, hidden_states: Tensor, *arguments: Any, **options: Any) -> Any:
        step, angles = options.get("ewe"), options.get("position_embeddings")
        if angles is None or not (isinstance(step, StepMetadata) and step.rotates):
            return super().forward(hidden_states, *arguments, **options)  # type: ignore[misc]
        return self.fused.run(hidden_states, angles[0][0], angles[1][0], step)


class _FusedNorm:
    """Comes before an RMS norm's class."""

    norm: Norm

    def forward(self, states: Tensor) -> Tensor:
        return rms_norm(states.flatten(0, -2), self.norm.scale, self.norm.eps).view(states.shape)


@cache
def _class(mixin: type, original: type) -> Any:
    return type(original.__name__, (mixin, original), {})


@torch.no_grad()
def fuse_layers(model: Any) -> int:
    """Has the decoder layers of a model (attn_implementation "ewe") run fused where the engine runs it over kernels.

    A layer is taken if it is made of known parts and its fused form gives what it gives itself, for three tokens, up to
    rounding; all others stay as they are. Returns the number of fused layers.
    """
    shapes = attention_layers(model)
    pool = KVPool(
        [LayerShape(shape.num_kv_heads, shape.key_dim, shape.value_dim) for shape in shapes], 2, _BLOCK, model.dtype,
        model.device,
    )  # fmt: skip
    slots = np.arange(_BLOCK, _BLOCK + _TRIAL_TOKENS)
    text = model.config.get_text_config()
    tokens = [text.vocab_size // 2 + number for number in range(_TRIAL_TOKENS)]
    # As far on as can be: some layers scale queries from a position on that most answers never reach.
    end = getattr(text, "max_position_embeddings", None) or _BLOCK
    batch = place_rows([ForwardRow(tokens, end - _TRIAL_TOKENS, slots)], "paper")
    moved = [torch.from_numpy(item).to(model.device) for item in (batch.token_ids, batch.positions, batch.write_slots)]
    backend = TritonBackend(model.device, _BLOCK, shapes[0].num_kv_heads)
    step = plan_step(batch, shapes, pool, backend, False, moved[2])
    layers = [module for module in model.modules() if hasattr(module, "self_attn") and hasattr(module, "mlp")]
    accepted: list[tuple[Any, FusedLayer]] = []
    hooks = [
        layer.register_forward_hook(partial(_try_out, shapes, step, accepted.append), with_kwargs=True)
        for layer in layers
    ]
    try:
        run_flat(model, moved[0], moved[1], 1, step)
    finally:
        for hook in hooks:
            hook.remove()
    for layer, fused in accepted:
        layer.__class__, layer.fused = _class(_Fused, layer.__class__), fused
    if accepted:
        _fuse_last_norm(model)
    _log.info("%d of %d layers run fused", len(accepted), len(shapes))
    return len(accepted)


def unfuse_layers(model: Any) -> None:
    """Takes back what `fuse_layers` did; merged weights stay merged."""
    for module in model.modules():
        if isinstance(module, (_Fused, _FusedNorm)):
            module.__class__ = type(module).__bases__[1]


def _try_out(
    shapes: list[AttentionLayer],
    step: StepMetadata,
    accept: Callable[[tuple[Any, FusedLayer]], None],
    layer: Any,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    output: Any,
) -> None:
    """Called when a layer has run: accepts its fused form if that gives the same."""
    parts = parts_of(layer)
    number = getattr(layer.self_attn, "layer_idx", None)
    angles = options.get("position_embeddings")
    if parts is None or number is None or angles is None or not arguments or not torch.is_tensor(output):
        return
    fused = FusedLayer(parts, shapes[number])
    if output.is_cuda:
        torch.cuda.empty_cache()  # merged weights take the place of the separate ones
    actual = fused.run(arguments[0].clone(), angles[0][0], angles[1][0], step)
    error, change = ((item - other).float().norm() for item, other in ((actual, output), (output, arguments[0])))
    if bool(error <= _TOLERANCE[output.dtype] * change):
        accept((layer, fused))
    else:
        _log.warning("layer %d is left as it is: its fused form gives other numbers", number)


def _fuse_last_norm(model: Any) -> None:
    last = getattr(model.base_model, "norm", None)
    norm = norm_of(last)
    if last is not None and norm is not None:
        last.__class__, last.norm = _class(_FusedNorm, last.__class__), norm
