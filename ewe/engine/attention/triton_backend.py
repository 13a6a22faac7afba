"""Attention in Triton kernels, for GPUs.

Nothing here waits for the device.
"""

import torch
from ewe_kernels.cache_write import write_kv
from ewe_kernels.decode import attend_pieces
from ewe_kernels.merge import merge_states
from ewe_kernels.prefill import attend_runs
from ewe_kernels.rotary_write import rotate_and_write
from ewe_kernels.tiles import narrow_tile, wide_tile

from ewe.engine.attention.attribution import segment_shares
from ewe.engine.attention.backend import LayerCall, Rotary
from ewe.engine.attention.block_lists import BlockLists
from ewe.engine.attention.metadata import FlatBatch
from ewe.engine.attention.triton_plan import Arranged, DecodePlan, PrefillPlan, TritonPlan, arrange, make_plan

# Three programs are resident per multiprocessor, and two pieces of work for each even out their lengths.
_PROGRAMS_PER_MULTIPROCESSOR = 6
# Stands for a GPU's where there is none and the kernels are interpreted.
_INTERPRETED_MULTIPROCESSORS = 4


class TritonBackend:
    """The backend for GPUs; block_size: tokens per block of the pool; num_kv_heads: of the model's layers."""

    def __init__(self, device: torch.device, block_size: int, num_kv_heads: int) -> None:
        self._device, self._block_size = device, block_size
        self._lists = BlockLists(block_size)
        self._multiprocessors = _INTERPRETED_MULTIPROCESSORS
        if device.type == "cuda":
            self._multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
        self.target_pieces = -(-self._multiprocessors * _PROGRAMS_PER_MULTIPROCESSOR // num_kv_heads)

    def plan(self, batch: FlatBatch, window: int | None, attribution: bool) -> TritonPlan:
        """See AttentionBackend.plan."""
        return make_plan(self.arrange(batch, window), batch, window, attribution, self._device)

    def arrange(self, batch: FlatBatch, window: int | None, most_states: int | None = None) -> Arranged:
        """The same on the host; most_states: see `decode_arrays`."""
        return arrange(batch, window, self._lists, self.target_pieces, most_states)

    def write(self, call: LayerCall, slots: torch.Tensor) -> None:
        """See AttentionBackend.write; a token whose slot is negative (padding) is written nowhere."""
        pools = call.pool_key, call.pool_value, call.key_scales, call.value_scales
        write_kv(call.key, call.value, slots, *pools)

    def rotate_and_write(self, call: LayerCall, rotary: Rotary, slots: torch.Tensor) -> None:
        """See RotatingBackend.rotate_and_write; a token whose slot is negative is left out."""
        call.query = rotate_and_write(
            call.query, call.key, call.value, rotary.cos, rotary.sin, slots, call.pool_key, call.pool_value,
            call.key_scales, call.value_scales, rotary.query_norm, rotary.key_norm, rotary.eps,
        )  # fmt: skip

    def attend(self, call: LayerCall, plan: TritonPlan) -> torch.Tensor:
        """See AttentionBackend.attend."""
        heads, tokens, _ = call.query.shape
        output = call.query.new_empty(tokens, heads, call.pool_value.shape[2])
        if plan.decode is not None:
            states = self._states(call, plan.tables, plan.decode)
            merge_states(*states, plan.decode.biases, plan.decode.begins, output[: plan.decode.num_rows])
        if plan.prefill is not None:
            self._prefill(call, plan.tables, plan.prefill, output, None)
        return output

    def shares(self, call: LayerCall, plan: TritonPlan, into: torch.Tensor) -> None:
        """See AttentionBackend.shares; attention is computed once more for it."""
        heads, tokens, _ = call.query.shape
        output = call.query.new_empty(tokens, heads, call.pool_value.shape[2])
        if plan.decode is not None:
            decode = plan.decode
            rows, indices, segments = decode.owners
            outputs, lses = self._states(call, plan.tables, decode)
            total = merge_states(outputs, lses, decode.biases, decode.begins, output[: decode.num_rows])
            shares = (lses + decode.biases[:, None] - total[rows]).exp().mean(1)
            into.index_put_((indices, segments), shares, accumulate=True)
        if plan.prefill is not None:
            lses = torch.full((tokens, heads, into.shape[1]), -torch.inf, device=self._device)
            self._prefill(call, plan.tables, plan.prefill, output, lses)
            for item in plan.prefill.rows:
                into[item.index] += segment_shares(lses[item.begin : item.end]).mean((0, 1))

    def _states(self, call: LayerCall, tables: torch.Tensor, plan: DecodePlan) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs [states, Hq, Dv] and LSEs [states, Hq] of all pieces."""
        heads, dim = call.query.shape[0], max(call.pool_key.shape[2], call.pool_value.shape[2])
        heads_per_kv = heads // call.pool_key.shape[1]
        outputs = torch.empty(plan.num_states, heads, call.pool_value.shape[2], device=self._device)
        lses = torch.empty(plan.num_states, heads, device=self._device)
        for pieces, count, tile, most_entries in (
            (plan.shared, plan.num_shared, wide_tile(heads_per_kv, dim, call.query.dtype), plan.most_sharing),
            (plan.alone, plan.num_alone, narrow_tile(heads_per_kv, dim, call.query.dtype), 1),
        ):
            attend_pieces(
                call.query, call.pool_key, call.pool_value, self._block_size, tables, pieces, plan.entries,
                outputs, lses, call.scale, call.softcap, tile, most_entries, call.key_scales, call.value_scales,
                count, tile.resident * self._multiprocessors,
            )  # fmt: skip
        return outputs, lses

    def _prefill(
        self,
        call: LayerCall,
        tables: torch.Tensor,
        plan: PrefillPlan,
        output: torch.Tensor,
        lses: torch.Tensor | None,
    ) -> None:
        attend_runs(
            call.query, call.pool_key, call.pool_value, self._block_size, tables, plan.runs, plan.segments,
            plan.biases, output, call.scale, call.softcap, plan.window, lses, call.key_scales,
            call.value_scales,
        )  # fmt: skip
