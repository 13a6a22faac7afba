"""Others that decode the same model's shape on the same GPU.

Each raises where its package or device is missing. Documents stand in the prompt, as they must without units.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from benchmarks.common import ROOT, Size, require, write_model_folder
from benchmarks.decode_limit import Load, timed

_VLLM_LIMIT_S = 100


class EnoughTokens(StoppingCriteria):
    """Ends each row of transformers' batch at its own wanted length."""

    def __init__(self, wanted: torch.Tensor, prompt_length: int) -> None:
        self.wanted, self.prompt_length = wanted, prompt_length

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> Any:
        """Bool [batch]: which rows are done."""
        return self.wanted <= input_ids.shape[1] - self.prompt_length


def static_generate(model: Any, size: Size, load: Load, device: str) -> dict[str, float]:
    """transformers' generate with a static cache, which compiles its decoding step; the prompts are equally long."""
    if not device.startswith("cuda"):
        raise RuntimeError("transformers compiles for GPUs only")
    prompts = _prompts(size, load)
    model.generation_config.eos_token_id = None

    def write(answer: int) -> None:
        # The cache has one length in all runs, so that none compiles anew.
        enough = EnoughTokens(torch.full((load.batch,), answer, device=device), prompts.shape[1])
        model.generate(
            prompts.to(device), attention_mask=torch.ones_like(prompts, device=device), max_new_tokens=load.answer,
            cache_implementation="static", do_sample=False, pad_token_id=0,
            stopping_criteria=StoppingCriteriaList([enough]),
        )  # fmt: skip

    return _figures(load, "transformers_static", timed(write, load.answer, device))


def continuous_batching(model: Any, size: Size, load: Load, device: str) -> dict[str, float]:
    """transformers' continuous batching."""
    if not device.startswith("cuda"):
        raise RuntimeError("continuous batching is measured on GPUs only")
    prompts = _prompts(size, load).tolist()
    model.generation_config.eos_token_id = -1

    def write(answer: int) -> None:
        config = model.generation_config.__class__(max_new_tokens=answer, do_sample=False, eos_token_id=-1)
        outputs = model.generate_batch(prompts, generation_config=config, persistent_manager=True)
        short = [item for item in outputs.values() if len(item.generated_tokens) != answer]
        if short or len(outputs) != load.batch:
            raise RuntimeError(f"{len(short)} of {load.batch} answers have another length")

    try:
        step = timed(write, load.answer, device)
    finally:
        model.destroy_cached_continuous_batching_manager()
    return _figures(load, "transformers_continuous", step)


def vllm(size: Size, loads: Sequence[Load]) -> dict[str, float]:
    """vLLM with prefix caching; its own process, because it wants the GPU's memory for itself."""
    require("vllm")
    with tempfile.TemporaryDirectory() as folder:
        write_model_folder(Path(folder), size)
        job = json.dumps([folder, size.dtype, [[_prompts(size, load).tolist(), load.answer] for load in loads]])
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.decode_peers"],
            cwd=ROOT,
            input=job,
            capture_output=True,
            text=True,
            timeout=_VLLM_LIMIT_S,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["vLLM failed"])[-1])
    steps = json.loads(done.stdout.splitlines()[-1])
    return {
        key: value
        for item in zip(loads, steps, strict=True)
        for key, value in _figures(item[0], "vllm", item[1]).items()
    }


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


def _run_vllm() -> None:
    """Reads jobs from standard input; the last line printed has the seconds per token of each."""
    package = require("vllm")
    folder, dtype, jobs = json.load(sys.stdin)
    engine = package.LLM(
        folder, load_format="dummy", dtype=dtype, enable_prefix_caching=True, skip_tokenizer_init=True,
        max_model_len=max(len(prompts[0]) + answer for prompts, answer in jobs) + 16, gpu_memory_utilization=0.8,
    )  # fmt: skip

    def write(prompts: list[list[int]], length: int) -> None:
        params = package.SamplingParams(max_tokens=length, temperature=0.0, ignore_eos=True, detokenize=False)
        engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], params)

    print(json.dumps([timed(partial(write, prompts), answer, "cuda") for prompts, answer in jobs]))


if __name__ == "__main__":
    _run_vllm()
