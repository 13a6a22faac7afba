"""The interpreter lets pass what the compiler refuses: every kernel compiles for real GPUs, and runs well there.

Well: it fits into registers and shared memory, as many programs as its tile says beside each other, and a pass computes
while the keys of later ones are on their way.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from ewe_kernels import tiles

SCRIPT = Path(__file__).with_name("compile_for_gpu.py")
KERNELS = Path(tiles.__file__).parent
# Stack bytes that cost nothing: a few registers saved outside the loops.
MOST_SPILLED = 64
# What spills more all the same, with any number of stages; no such card was at hand to look for a better tile.
SPILLING = {(100, "prefill_fp8"), *((120, f"prefill{end}") for end in ("", "_capped", "_fp8"))}
# Bytes of shared memory that one program may take, by capability; 86 and 89 have less than 80 but run the same code.
SHARED = {80: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10}
# Instructions of tensor cores: of few rows, and of 64 and more by capability, with the kernels that must have these.
SMALL_TILES = "mma.sync.aligned.m16n8k"
WHOLE_TILES = {90: "wgmma.mma_async.sync.aligned.m64", 100: "tcgen05.mma"}
ON_WHOLE_TILES = {f"{kind}{end}" for kind in ("prefill", "decode_shared") for end in ("", "_capped", "_64")}
# What a multiprocessor of an H100 has: registers, and bytes of shared memory, of which each program costs some more.
REGISTERS, H100_SHARED, PER_PROGRAM = 65536, 228 << 10, 1 << 10
# Loops over keys. A prefill of wide heads waits for its copies: for more stages small cards have no room.
LOOPS = {name: 1 for kind in ("decode", "decode_shared") for name in (kind, *(f"{kind}_{end}" for end in (64, 256)))}
LOOPS |= {"decode_capped": 1, "decode_shared_capped": 1, "prefill": 3, "prefill_64": 3, "prefill_capped": 2}
FP8_LOOPS = {"decode_fp8": 1, "decode_shared_fp8": 1, "prefill_fp8": 3}


def compiled(capability: int, folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    """What kernels take, by name."""
    environment = {name: item for name, item in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(folder)
    command = [sys.executable, str(SCRIPT), str(capability), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {item["name"]: item for item in map(json.loads, done.stdout.splitlines())}


def check_fit(built: dict[str, Any], capability: int) -> None:
    assert built["spilled"] <= MOST_SPILLED or (capability, built["name"]) in SPILLING, built
    assert built["shared"] <= SHARED[capability], built


def check_waits(built: dict[str, Any], loops: int) -> None:
    """No pass waits for all copies: those of the next passes go on meanwhile."""
    assert len(built["waits"]) == loops, built
    assert min(built["waits"]) > 0, built


def check_resident(built: dict[str, Any], tile: tiles.Tile) -> None:
    """As many programs find room on a multiprocessor of an H100 as are launched for it."""
    registers = -(-built["registers"] // 8) * 8 * built["threads"]  # they are given out in eights
    assert tile.resident * registers <= REGISTERS, built
    assert tile.resident * (built["shared"] + PER_PROGRAM) <= H100_SHARED, built


def check_products(built: dict[str, Any], capability: int) -> None:
    """Tensor cores compute the products, and those of many rows in whole tiles where the card has such."""
    whole = WHOLE_TILES.get(capability, SMALL_TILES)
    allowed = whole if built["name"] in ON_WHOLE_TILES else (whole, SMALL_TILES)
    assert built["products"], built
    assert all(item.startswith(allowed) for item in built["products"]), built


def test_every_kernel_is_compiled_here():
    defined = {name for path in KERNELS.glob("*.py") for name in re.findall(r"def (_\w+_kernel)\(", path.read_text())}
    assert set(re.findall(r"\b_[a-z_]+_kernel\b", SCRIPT.read_text())) == defined


@pytest.mark.slow
def test_decoding_over_shared_units_loads_the_next_keys_while_it_computes(tmp_path):
    built = compiled(90, tmp_path, "decode_shared")["decode_shared"]
    check_fit(built, 90)
    check_waits(built, 1)
    check_products(built, 90)
    check_resident(built, tiles.wide_tile(4, 128, torch.bfloat16))


@pytest.mark.slow
@pytest.mark.parametrize(("capability", "kernels"), [(80, 24), (90, 32), (100, 32), (120, 32)])
def test_every_kernel_compiles_fits_and_does_not_wait_for_all_copies(capability, kernels, tmp_path):
    found = compiled(capability, tmp_path)
    assert len(found) == kernels
    for built in found.values():
        check_fit(built, capability)
    for name, loops in {**LOOPS, **(FP8_LOOPS if capability > 80 else {})}.items():
        check_waits(found[name], loops)
        check_products(found[name], capability)
    for name in found:
        if name.startswith("product"):
            check_waits(found[name], 1)
            check_products(found[name], capability)
    if capability == 90:
        check_resident(found["decode"], tiles.narrow_tile(4, 128, torch.bfloat16))
        check_resident(found["decode_shared"], tiles.wide_tile(4, 128, torch.bfloat16))
