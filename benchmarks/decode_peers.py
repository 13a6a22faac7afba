"""Others that decode the same model's shape on the same GPU, each in a process of its own that is ended at its limit.

Each raises where its package or device is missing. Documents stand in the prompt, as they must without units.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from benchmarks.common import ROOT, Size, require, write_model_folder
from benchmarks.decode_limit import Load, timed
from benchmarks.rig import as_in_transformers, load_synthetic

# Seconds per peer: the first compiles for most of it.
LIMITS = {"transformers_static": 70, "transformers_continuous": 60, "vllm": 100}
# What the benchmark's own process leaves of a GPU's memory.
_VLLM_MEMORY = 0.6


class EnoughTokens(StoppingCriteria):
    """Ends each row of transformers' batch at its own wanted length."""

    def __init__(self, wanted: torch.Tensor, prompt_length: int) -> None:
        self.wanted, self.prompt_length = wanted, prompt_length

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> Any:
        """Bool [batch]: which rows are done."""
        return self.wanted <= input_ids.shape[1] - self.prompt_length


def measure_peer(name: str, size: Size, loads: Sequence[Load], device: str) -> dict[str, float]:
    """A peer's figures under these loads; raises RuntimeError if it fails or has not ended within its limit."""
    if not device.startswith("cuda"):
        raise RuntimeError("peers are measured on GPUs only")
    if importlib.util.find_spec(package := name.split("_")[0]) is None:
        raise ImportError(f"{package} is not installed")
    job = json.dumps([name, asdict(size), [asdict(load) for load in loads]])
    command = [sys.executable, "-m", "benchmarks.decode_peers"]
    # Standard error stays the caller's; a process that fails tells why on its last line.
    with subprocess.Popen(  # noqa: S603 (no shell)
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            said, _ = process.communicate(job, LIMITS[name])
        except subprocess.TimeoutExpired:
            for part in (*psutil.Process(process.pid).children(recursive=True), process):  # with what compiles for it
                part.kill()
            raise RuntimeError(f"not done after {LIMITS[name]} s") from None
    last = (said.strip().splitlines() or ["{}"])[-1]
    if process.returncode != 0:
        raise RuntimeError(last)
    figures: dict[str, float] = json.loads(last)
    return figures


def static_generate(size: Size, load: Load) -> float:
    """Seconds per token of transformers' generate with a static cache, which compiles its decoding step."""
    model, prompts = _transformers(size), _prompts(size, load)
    model.generation_config.eos_token_id = None

    def write(answer: int) -> None:
        # The cache has one length in all runs, so that none compiles anew; the prompts are equally long.
        enough = EnoughTokens(torch.full((load.batch,), answer, device="cuda"), prompts.shape[1])
        model.generate(
            prompts.cuda(), attention_mask=torch.ones_like(prompts, device="cuda"), max_new_tokens=load.answer,
            cache_implementation="static", do_sample=False, pad_token_id=0,
            stopping_criteria=StoppingCriteriaList([enough]),
        )  # fmt: skip

    return timed(write, load.answer, "cuda")


def continuous_batching(size: Size, load: Load) -> float:
    """Seconds per token of transformers' continuous batching."""
    model, prompts = _transformers(size), _prompts(size, load).tolist()
    model.generation_config.eos_token_id = -1

    def write(answer: int) -> None:
        config = model.generation_config.__class__(max_new_tokens=answer, do_sample=False, eos_token_id=-1)
        outputs = model.generate_batch(prompts, generation_config=config, persistent_manager=True)
        short = [item for item in outputs.values() if len(item.generated_tokens) != answer]
        if short or len(outputs) != load.batch:
            raise RuntimeError(f"{len(short)} of {load.batch} answers have another length")

    return timed(write, load.answer, "cuda")


def vllm(size: Size, loads: Sequence[Load]) -> list[float]:
    """Seconds per token of vLLM with prefix caching."""
    package = require("vllm")
    jobs = [(load, _prompts(size, load).tolist()) for load in loads]
    longest = max(len(prompts[0]) + load.answer for load, prompts in jobs) + 16
    with tempfile.TemporaryDirectory() as folder:
        write_model_folder(Path(folder), size)
        engine = package.LLM(
            folder, load_format="dummy", dtype=size.dtype, enable_prefix_caching=True, skip_tokenizer_init=True,
            max_model_len=longest, gpu_memory_utilization=_VLLM_MEMORY,
        )  # fmt: skip

    def write(prompts: list[list[int]], length: int) -> None:
        params = package.SamplingParams(max_tokens=length, temperature=0.0, ignore_eos=True, detokenize=False)
        engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], params)

    return [timed(partial(write, prompts), load.answer, "cuda") for load, prompts in jobs]


PEERS: dict[str, Callable[[Size, Sequence[Load]], list[float]]] = {
    "transformers_static": lambda size, loads: [static_generate(size, load) for load in loads],
    "transformers_continuous": lambda size, loads: [continuous_batching(size, load) for load in loads],
    "vllm": vllm,
}


def _transformers(size: Size) -> Any:
    model = load_synthetic(size, "cuda").model
    as_in_transformers(model)
    return model


def _prompts(size: Size, load: Load) -> torch.Tensor:
    """int64 [batch, documents and prompt]: documents that all share or of their own, and prompts of their own."""
    generator = torch.Generator().manual_seed(2)
    vocab_size = size.model["vocab_size"]
    memories = load.batch if load.own_documents else 1
    documents = torch.randint(3, vocab_size, (memories, size.units * size.unit_tokens), generator=generator)
    prompts = torch.randint(3, vocab_size, (load.batch, load.prompt), generator=generator)
    return torch.cat([documents.expand(load.batch, -1), prompts], 1)


def _figures(load: Load, name: str, step: float) -> dict[str, float]:
    return {
        f"{load.name}_{name}_tokens_per_s": round(load.batch / step, 1),
        f"{load.name}_{name}_step_ms": round(step * 1e3, 3),
    }


def _run() -> None:
    """Reads a job from standard input; the last line printed has its figures, or why there are none."""
    name, size, loads = json.load(sys.stdin)
    known = [Load(**load) for load in loads]
    try:
        steps = PEERS[name](Size(**size), known)
    except Exception as error:  # foreign code fails in many ways
        traceback.print_exc()
        print(f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}", flush=True)
        os._exit(1)  # without waiting for what it has started
    found = [_figures(load, name, step) for load, step in zip(known, steps, strict=True)]
    print(json.dumps(dict(ChainMap(*found))), flush=True)
    os._exit(0)


if __name__ == "__main__":
    _run()
