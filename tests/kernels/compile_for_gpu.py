"""Compiles the kernels for a GPU that need not be there; run as a script, outside the interpreter.

    python compile_for_gpu.py CAPABILITY [KERNEL ...]

Prints one JSON document per kernel (`Built`), and fails where one does not compile.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from ewe_kernels import (
    cache_write,
    candidates,
    decode,
    gated,
    merge,
    penalties,
    prefill,
    rotary_write,
    sampling,
    small_product,
    tiles,
)
from ewe_kernels import norm as norms
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HEADS, DIM = 4, 128
# Further widths of heads that models have (SmolLM2 and Qwen2.5-0.5B, Gemma), with their query heads per key head.
OTHER_DIMS = {64: 7, 256: 2}
_PRODUCT = re.compile(r"(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)[.\w]*")
Settings = tuple[dict[str, object], int, int]
Cases = dict[str, tuple[Any, Settings]]
# Arguments whose type does not follow from their name; pointers are to float32 otherwise, numbers int32.
POINTERS = {
    "*bf16": (
        *("query", "output", "merged", "key", "value", "inputs", "bias", "states", "delta", "gate", "up", "rotated"),
        *("cos", "sin", "matrix", "factors"),
    ),
    "*i32": (
        "tables",
        "pieces",
        "entries",
        "begins",
        "num_pieces",
        "runs",
        "segments",
        "top_ks",
        "rows",
        "tokens",
        "counts",
        "bests",
        "lengths",
        "found_ids",
    ),
    "*i16": ("bins",),
    "*i64": ("drawn", "slots"),
}
POOL = ("pool_key", "pool_value", "weight")
NUMBERS = {
    "scale": "fp32",
    "softcap": "fp32",
    "window": "i32",
    "size": "i32",
    "parts": "i32",
    "num_rows": "i32",
    "num_runs": "i32",
    "num_outputs": "i32",
    "most_entries": "i32",
    "eps": "fp32",
}


def argument_type(name: str, pool: str) -> str:
    """Triton's name of the argument's type; pool: that of keys and values in the pool."""
    if name in POOL:
        return pool
    if "stride" in name or name in NUMBERS:
        return NUMBERS.get(name, "i32")
    return next((kind for kind, names in POINTERS.items() if name in names), "*fp32")


@dataclass(frozen=True)
class Built:
    """What a kernel takes: registers per thread, bytes that these spill, bytes of shared memory, threads.

    waits: for every loop over keys that copies asynchronously, how many copies are under way while a pass computes.
    products: the instructions of tensor cores that it has, with their shapes and types.
    """

    name: str
    registers: int
    spilled: int
    shared: int
    threads: int
    waits: list[int]
    products: list[str]


def attention(tile: tiles.Tile, heads: int, dim: int, **more: object) -> Settings:
    """Constants, warps and stages of an attention kernel."""
    constants = {"HEADS": heads, "D": dim, "DV": dim, "D_PADDED": dim, "DV_PADDED": dim, "BLOCK_SIZE": 16}
    constants |= {"ROWS": tile.rows, "KEYS": tile.keys, "SOFTCAP": False, "PRECISION": "tf32", **more}
    return constants, tile.warps, tile.stages


def attention_cases(heads: int, dim: int, **more: object) -> Cases:
    """The kernels that read the pool."""
    narrow, wide, long = (
        attention(choose(heads, dim, torch.bfloat16), heads, dim, **more)
        for choose in (tiles.narrow_tile, tiles.wide_tile, tiles.prefill_tile)
    )
    long[0].update(WINDOW=False, LSE=False)
    wide[0]["KV_HEADS"] = narrow[0]["KV_HEADS"] = 8
    return {
        "decode": (decode._piece_kernel, narrow),
        "decode_shared": (decode._piece_kernel, wide),
        "prefill": (prefill._prefill_kernel, long),
    }


def other_attention_cases(**more: object) -> Cases:
    """The same with all that a model or a request can ask for, and for heads of other widths."""
    found = {f"{name}_capped": item for name, item in attention_cases(HEADS, DIM, SOFTCAP=True, **more).items()}
    found["prefill_capped"][1][0].update(WINDOW=True, LSE=True)
    for dim, heads in OTHER_DIMS.items():
        found |= {f"{name}_{dim}": item for name, item in attention_cases(heads, dim, **more).items()}
    return found


def cases() -> Cases:
    """Every kernel with its constants, warps and stages."""
    write = {"HEADS": 8, "D": DIM, "DV": DIM, "HEADS_PADDED": 8, "D_PADDED": DIM, "DV_PADDED": DIM}
    write |= {"key_scales": None, "value_scales": None}
    rotary = {**write, "HEADS": HEADS, "HEADS_PADDED": HEADS, "ROTARY": DIM}
    norm = {"SIZE": 4096, "SIZE_PADDED": 4096}
    states = {"DV": DIM, "DV_PADDED": DIM, "STATES": 16, "SINKS": True}
    listed = {"PARTS": 64, "CAPACITY": 32768}
    exact = {"key_scales": None, "value_scales": None}
    return {
        **attention_cases(HEADS, DIM, **exact),
        **other_attention_cases(**exact),
        "merge": (merge._merge_kernel, (states, 4, 3)),
        "write": (cache_write._write_kernel, (write, 4, 3)),
        "rotary_write": (rotary_write._rotary_write_kernel, (rotary, 2, 3)),
        "norm": (norms._norm_kernel, (norm, 8, 3)),
        "gated": (gated._gated_kernel, ({"SILU": True, "BLOCK": 1024}, 4, 3)),
        "statistics": (candidates._statistics_kernel, ({"SAME": False, "BLOCK": 4096}, 8, 3)),
        "candidates": (candidates._candidates_kernel, ({"BLOCK": 4096, **listed}, 8, 3)),
        "sample": (sampling._sample_kernel, ({"BLOCK": 2048, **listed}, 8, 3)),
        "penalise": (penalties._penalty_kernel, ({"BLOCK": 128}, 4, 3)),
    }


def fp8_cases() -> Cases:
    """The kernels over a pool in e4m3."""
    write = {"HEADS": 8, "D": DIM, "DV": DIM, "HEADS_PADDED": 8, "D_PADDED": DIM, "DV_PADDED": DIM}
    attending = {f"{name}_fp8": item for name, item in attention_cases(HEADS, DIM).items()}
    rotary = {**write, "HEADS": HEADS, "HEADS_PADDED": HEADS, "ROTARY": DIM}
    return {
        **attending,
        "write_fp8": (cache_write._write_kernel, (write, 4, 3)),
        "rotary_write_fp8": (rotary_write._rotary_write_kernel, (rotary, 2, 3)),
    }


def product_cases() -> Cases:
    """The product with a matrix in 8 bits, by rows and outputs."""
    found = {}
    for rows, outputs in ((1, 4096), (1, 14336), (64, 14336)):
        sizes, warps, stages = small_product.tile(rows, outputs, torch.bfloat16.itemsize)
        constants = {**sizes, "WHOLE": True, "BIAS": True, "PRECISION": "tf32"}
        found[f"product_{rows}x{outputs}"] = (small_product._product_kernel, (constants, warps, stages))
    return found


def build(kernel: Any, settings: Settings, capability: int, pool: str) -> Any:
    """The kernel as Triton compiles it for this capability (major and minor in one number)."""
    constants, warps, stages = settings
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else argument_type(name, pool) for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if signature[name] != "fp32"}
    aligned = {place: note for place, note in aligned.items() if names[place[0]] not in constants}
    source = ASTSource(kernel, signature, {(names.index(name),): item for name, item in constants.items()}, aligned)
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def waits_in_loops(code: str) -> Iterator[int]:
    """For each innermost loop of a kernel in Triton's GPU dialect the copies that its strictest wait leaves under way.

    Loops without waits are left out.
    """
    open_loops: list[list[int] | None] = []  # None for any other region, and for a loop with a loop inside
    for line in code.splitlines():
        closes, opens = line.lstrip().startswith("}"), line.rstrip().endswith("{")
        if closes and open_loops:
            found = open_loops.pop()
            if found:
                yield min(found)
        if opens:
            is_loop = "scf.for" in line
            open_loops = [None] * len(open_loops) if is_loop else open_loops
            open_loops.append([] if is_loop else None)
        wait = re.search(r"ttg\.async_wait.*num = (\d+)", line)
        if wait and open_loops and open_loops[-1] is not None:
            open_loops[-1].append(int(wait[1]))


def measure(name: str, kernel: Any, settings: Settings, capability: int, pool: str) -> Built:
    """What a kernel takes when it is compiled."""
    dump = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    built = build(kernel, settings, capability, pool)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        command = [dump, "--dump-resource-usage", file.name]
        usage = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
    fields = dict(item.split(":") for item in usage.split() if item.count(":") == 1 and item[-1] != ":")
    waits = list(waits_in_loops(built.asm["ttgir"]))
    threads = 32 * built.metadata.num_warps
    products = sorted(set(_PRODUCT.findall(built.asm["ptx"])))
    return Built(name, int(fields["REG"]), int(fields["STACK"]), built.metadata.shared, threads, waits, products)


def main(capability: int, *wanted: str) -> None:
    """Compiles these kernels, or all."""
    every = {name: (*item, "*bf16") for name, item in cases().items()}
    every |= {name: (*item, "*i8") for name, item in product_cases().items()}
    if capability >= 89:  # older ones do not read e4m3
        every |= {name: (*item, "*u8" if "write" in name else "*fp8e4nv") for name, item in fp8_cases().items()}
        every |= {f"{name}_fp8": (*item, "*fp8e4nv") for name, item in product_cases().items()}
    for name in wanted or every:
        kernel, settings, pool = every[name]
        print(json.dumps(asdict(measure(name, kernel, settings, capability, pool))), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
