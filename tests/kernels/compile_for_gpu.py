"""Compiles the kernels for a GPU that need not be there; run as a script, outside the interpreter.

Prints one line per kernel, registers and spilled bytes, and fails where one does not compile.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
SHAPES = {"HEADS": HEADS, "D": DIM, "DV": DIM, "D_PADDED": DIM, "DV_PADDED": DIM, "BLOCK_SIZE": 16}
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


def attention(tile: tiles.Tile, **more: object) -> tuple[dict[str, object], int, int]:
    """Constants, warps and stages of an attention kernel."""
    constants = {**SHAPES, "ROWS": tile.rows, "KEYS": tile.keys, "SOFTCAP": True, "PRECISION": "tf32", **more}
    return constants, tile.warps, tile.stages


def attention_cases(**more: object) -> dict[str, tuple[object, tuple[dict[str, object], int, int]]]:
    """The kernels that read the pool."""
    bf16 = torch.bfloat16
    return {
        "decode": (decode._piece_kernel, attention(tiles.narrow_tile(HEADS, DIM, bf16), KV_HEADS=8, **more)),
        "decode_shared": (decode._piece_kernel, attention(tiles.wide_tile(HEADS, DIM, bf16), KV_HEADS=8, **more)),
        "prefill": (
            prefill._prefill_kernel,
            attention(tiles.prefill_tile(HEADS, DIM, bf16), WINDOW=True, LSE=True, **more),
        ),
    }


def cases() -> dict[str, tuple[object, tuple[dict[str, object], int, int]]]:
    """Every kernel with its constants, warps and stages."""
    write = {"HEADS": 8, "D": DIM, "DV": DIM, "HEADS_PADDED": 8, "D_PADDED": DIM, "DV_PADDED": DIM}
    write |= {"key_scales": None, "value_scales": None}
    rotary = {**write, "HEADS": HEADS, "HEADS_PADDED": HEADS, "ROTARY": DIM}
    norm = {"SIZE": 4096, "SIZE_PADDED": 4096}
    states = {"DV": DIM, "DV_PADDED": DIM, "STATES": 16, "SINKS": True}
    listed = {"PARTS": 64, "CAPACITY": 32768}
    return {
        **attention_cases(key_scales=None, value_scales=None),
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


def fp8_cases() -> dict[str, tuple[object, tuple[dict[str, object], int, int]]]:
    """The kernels over a pool in e4m3."""
    write = {"HEADS": 8, "D": DIM, "DV": DIM, "HEADS_PADDED": 8, "D_PADDED": DIM, "DV_PADDED": DIM}
    attending = {f"{name}_fp8": item for name, item in attention_cases().items()}
    rotary = {**write, "HEADS": HEADS, "HEADS_PADDED": HEADS, "ROTARY": DIM}
    return {
        **attending,
        "write_fp8": (cache_write._write_kernel, (write, 4, 3)),
        "rotary_write_fp8": (rotary_write._rotary_write_kernel, (rotary, 2, 3)),
    }


def product_cases() -> dict[str, tuple[object, tuple[dict[str, object], int, int]]]:
    """The product with a matrix in 8 bits, by rows and outputs."""
    found = {}
    for rows, outputs in ((1, 4096), (1, 14336), (64, 14336)):
        sizes, warps, stages = small_product.tile(rows, outputs, torch.bfloat16.itemsize)
        constants = {**sizes, "WHOLE": True, "BIAS": True, "PRECISION": "tf32"}
        found[f"product_{rows}x{outputs}"] = (small_product._product_kernel, (constants, warps, stages))
    return found


def build(kernel: object, constants: dict[str, object], warps: int, stages: int, capability: int, pool: str) -> bytes:
    """The machine code."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else argument_type(name, pool) for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if signature[name] != "fp32"}
    aligned = {place: note for place, note in aligned.items() if names[place[0]] not in constants}
    source = ASTSource(kernel, signature, {(names.index(name),): item for name, item in constants.items()}, aligned)
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["cubin"]


def main(capability: int) -> None:
    """Compiles all."""
    dump = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    every = {name: (*item, "*bf16") for name, item in cases().items()}
    every |= {name: (*item, "*i8") for name, item in product_cases().items()}
    if capability >= 89:  # older ones do not read e4m3
        every |= {name: (*item, "*u8" if "write" in name else "*fp8e4nv") for name, item in fp8_cases().items()}
        every |= {f"{name}_fp8": (*item, "*fp8e4nv") for name, item in product_cases().items()}
    for name, (kernel, settings, pool) in every.items():
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(build(kernel, *settings, capability, pool))
            file.flush()
            command = [dump, "--dump-resource-usage", file.name]
            usage = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
        fields = dict(item.split(":") for item in usage.split() if item.count(":") == 1 and item[-1] != ":")
        print(f"{name} registers {fields['REG']} spilled {fields['STACK']}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
