"""What the engine's decode attention is measured against: others' attention over the same keys.

Each raises where its package or device is missing; none of them knows the engine's kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.attention_problem import BLOCK, Problem
from benchmarks.common import require

_WORKSPACE_BYTES = 128 << 20

Calls = list[Callable[[], object]]


def sdpa(problem: Problem) -> Calls:
    """torch's fused attention over dense keys, gathered for free; without the biases, which would slow it."""
    return [
        partial(scaled_dot_product_attention, query, key, value, enable_gqa=True)
        for query, key, value in problem.dense()
    ]


def flex(problem: Problem) -> Calls:
    """FlexAttention over the same dense keys, with the biases of eq. 1 added to the logits."""
    if problem.device.type != "cuda":
        raise RuntimeError("FlexAttention is compiled for GPUs only here")
    from torch.nn.attention.flex_attention import flex_attention

    bias = problem.biases()

    def biased(score: Any, batch: Any, head: Any, query: Any, key: Any) -> Any:
        return score + bias[batch, key]

    compiled: Any = torch.compile(flex_attention, dynamic=False)
    calls: Calls = [
        partial(compiled, query, key, value, score_mod=biased, enable_gqa=True) for query, key, value in problem.dense()
    ]
    calls[0]()
    return calls


def flashinfer_decode(problem: Problem, tensor_cores: bool) -> Calls:
    """FlashInfer's paged decoding over units and context as one list of pages, without the biases."""
    infer = require("flashinfer")
    pages, indptr = problem.pages()
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device=problem.device)
    wrapper = infer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_tensor_cores=tensor_cores)
    last = torch.full((problem.batch,), BLOCK, dtype=torch.int32, device=problem.device)
    wrapper.plan(
        indptr, pages, last, problem.heads, problem.kv_heads, problem.dim, BLOCK,
        q_data_type=problem.dtype, kv_data_type=problem.dtype,
    )  # fmt: skip
    return [partial(wrapper.run, query, cache) for query, cache in problem.paged()]


def flash_attention_3(problem: Problem) -> Calls:
    """FlashAttention 3's paged decoding over units and context as one list of pages, without the biases."""
    attend = require("flash_attn_interface").flash_attn_with_kvcache
    pages = problem.pages()[0].view(problem.batch, -1)
    lengths = torch.full((problem.batch,), problem.keys_per_row, dtype=torch.int32, device=problem.device)
    return [
        partial(attend, query.unsqueeze(1), keys, values, cache_seqlens=lengths, page_table=pages)
        for query, (keys, values) in problem.paged()
    ]


def flashinfer_cascade(problem: Problem) -> Calls:
    """FlashInfer's cascade: the units, which all rows share, as the first level, each row's context as the second."""
    infer = require("flashinfer")
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device=problem.device)
    wrapper = infer.MultiLevelCascadeAttentionWrapper(2, workspace, "NHD")
    (shared, shared_indptr), (own, own_indptr) = problem.shared_pages()
    rows = torch.arange(problem.batch + 1, dtype=torch.int32, device=problem.device)
    last = torch.full((problem.batch,), BLOCK, dtype=torch.int32, device=problem.device)
    wrapper.plan(
        [rows[[0, -1]].contiguous(), rows], [shared_indptr, own_indptr], [shared, own], [last[:1], last],
        problem.heads, problem.kv_heads, problem.dim, BLOCK, q_data_type=problem.dtype,
    )  # fmt: skip
    return [partial(wrapper.run, query, cache) for query, cache in problem.paged()]
