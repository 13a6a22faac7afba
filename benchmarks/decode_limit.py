"""How near decoding comes to the time in which the weights and the keys can be read.

(bytes of weights + bytes of distinct keys and values) / the rate of a large copy, per step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from benchmarks import plots
from benchmarks.common import Size, seconds, text_of
from benchmarks.rig import Rig, write_together
from ewe import LLM, SamplingParams
from ewe.engine.attention.metadata import ForwardRow
from ewe.engine.models.loader import LoadedModel

_BLOCK = 16
_MOST_RUNS = 6


@dataclass(frozen=True, slots=True)
class Load:
    """Answers at once, prompt tokens and answer tokens of each, and whether each has documents of its own.

    variant: what is different about the engine, for the figures' names. ahead: scheduler.async_scheduling.
    """

    batch: int
    prompt: int
    answer: int
    own_documents: bool = False
    variant: str = ""
    ahead: bool | None = None

    @property
    def name(self) -> str:
        """How figures call it."""
        return f"batch_{self.batch}" + ("_own_documents" if self.own_documents else "") + self.variant


# Those that peers are held against, which come before them; and the others.
FIRST_GPU_LOADS = (Load(1, 512, 128), Load(64, 512, 64), Load(128, 256, 48))
MORE_GPU_LOADS = (
    Load(8, 512, 64),
    Load(32, 512, 64),
    Load(32, 512, 64, own_documents=True),
    Load(256, 256, 48),
    Load(1, 512, 128, variant="_waiting", ahead=False),
    Load(64, 512, 64, variant="_waiting", ahead=False),
)
CPU_LOADS = (Load(1, 64, 32), Load(8, 64, 16))
SMOKE_LOADS = (Load(1, 8, 4), Load(3, 8, 4, own_documents=True))


class Limit:
    """The bandwidth limit of one model; copy_rate: bytes read and written per second."""

    def __init__(self, loaded: LoadedModel, size: Size, copy_rate: float) -> None:
        model, config = loaded.model, loaded.model.config
        # Of the embedding a step reads a row per token, unless it is the output layer's weight too.
        tied = config.tie_word_embeddings
        embedding = 0 if tied else model.get_input_embeddings().weight.nbytes
        weights = (*model.parameters(), *model.buffers())  # those in 8 bits are buffers
        self.weight_bytes = sum(weight.nbytes for weight in weights) - embedding
        head_dim = config.hidden_size // config.num_attention_heads
        self.token_bytes = 2 * config.num_hidden_layers * config.num_key_value_heads * head_dim * model.dtype.itemsize
        self.size, self.copy_rate = size, copy_rate

    def step_seconds(self, load: Load) -> float:
        """The least time of one step in the middle of the answers."""
        memories = load.batch if load.own_documents else 1
        tokens = memories * self.size.units * self.size.unit_tokens + load.batch * (load.prompt + load.answer / 2)
        return float(self.weight_bytes + tokens * self.token_bytes) / self.copy_rate


def copy_rate(device: str, smoke: bool, repeats: int) -> float:
    """Bytes read and written per second by a large copy on a warm device; smoke: by one of next to nothing."""
    num_bytes = 1 << (16 if smoke else 30 if device.startswith("cuda") else 28)
    source = torch.empty(num_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copies() -> None:
        for _ in range(8):
            target.copy_(source)

    return 16 * num_bytes / seconds(copies, device, repeats, warmups=4)


def need_graphs(device: str, number: int) -> None:
    """Raises RuntimeError if an engine on a GPU has captured none: what it does then is another engine's time."""
    if device.startswith("cuda") and not number:
        raise RuntimeError("no CUDA graph was captured; the log says why")


def settled(measure: Callable[[], float], graphs: Callable[[], int]) -> float:
    """What `measure` finds once it needs no new graph; graphs: how many there are.

    What a pass needs depends on who has come by then, so a run may meet a size that those before it did not. Raises
    RuntimeError if new ones come every time.
    """
    for _ in range(_MOST_RUNS):
        before, found = graphs(), measure()
        if graphs() == before:
            return found
    raise RuntimeError(f"graphs were captured in each of {_MOST_RUNS} timed runs")


def measure_engine(loaded: LoadedModel, limit: Limit, load: Load, device: str) -> dict[str, float]:
    """Tokens per second of all answers after their first tokens, and which share of the limit that is."""
    size = limit.size
    memories = load.batch if load.own_documents else 1
    tokens = load.batch * (load.prompt + load.answer + _BLOCK) + memories * size.units * (size.unit_tokens + _BLOCK)
    config = {
        "policy": "plain",
        "memory": {"retrieval_units": size.units, "verification_units": 0, "unit_tokens": size.unit_tokens},
        "cache": {"block_size": _BLOCK, "num_blocks": 5 * tokens // (4 * _BLOCK) + 64},
        "scheduler": {
            "max_num_seqs": load.batch,
            "max_num_batched_tokens": max(8192, size.unit_tokens + load.batch),
            "async_scheduling": load.ahead,
        },
    }
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(3, size.model["vocab_size"], (load.batch, load.prompt), generator=generator).tolist()
    documents = [[text_of(size.unit_tokens, m * size.units + u) for u in range(size.units)] for m in range(memories)]
    with LLM(config=config, loaded=loaded) as llm:

        def write(answer: int) -> None:
            params = SamplingParams(max_tokens=answer, ignore_eos=True)
            jobs = [(prompt, params, documents[n % memories]) for n, prompt in enumerate(prompts)]
            assert all(len(item.token_ids) == answer for item in write_together(llm, jobs))

        def took(answer: int) -> float:
            timed_run = partial(seconds, partial(write, answer), device, 1, warmups=0)
            return settled(timed_run, lambda: llm.client.status().graphs)

        need_graphs(device, llm.client.status().graphs)
        write(load.answer)  # encodes the documents
        first, whole = took(1), took(load.answer)
    step = (whole - first) / (load.answer - 1)
    return {
        f"{load.name}_engine_tokens_per_s": round(load.batch / step, 1),
        f"{load.name}_engine_step_ms": round(step * 1e3, 3),
        f"{load.name}_engine_of_limit": round(limit.step_seconds(load) / step, 3),
    }


def measure_step(loaded: LoadedModel, limit: Limit, load: Load, repeats: int) -> dict[str, float]:
    """The model runner alone: a step's time with its tables planned, without scheduling, sampling or text."""
    size = limit.size
    memories = load.batch if load.own_documents else 1
    length = load.prompt + load.answer // 2
    padded = -(-length // _BLOCK) * _BLOCK
    rig = Rig(loaded, size.unit_tokens, load.batch * padded + memories * size.units * size.unit_tokens + _BLOCK)
    memory = [tuple(rig.slots(size.unit_tokens) for _ in range(size.units)) for _ in range(memories)]
    contexts = [rig.slots(padded)[:length] for _ in range(load.batch)]
    rows = [
        ForwardRow([3], length + size.unit_tokens, context, memory[number % memories], (1.0,) * size.units)
        for number, context in enumerate(contexts)
    ]

    def steps() -> None:
        for _ in range(8):
            rig.runner.forward(rows)

    def graphs() -> int:
        return 0 if rig.runner.static is None else rig.runner.static.num_graphs

    step = settled(partial(seconds, steps, rig.device, repeats, warmups=2), graphs) / 8
    need_graphs(rig.device, graphs())
    return {
        f"{load.name}_step_ms": round(step * 1e3, 3),
        f"{load.name}_step_of_limit": round(limit.step_seconds(load) / step, 3),
    }


def limit_panels(figures: Mapping[str, float]) -> list[plots.Panel]:
    """Pictures of these figures and of the peers', by answers at once."""

    def line(name: str) -> dict[float, float]:
        return plots.by_number(plots.found(figures, rf"batch_(\d+)_{name}"))

    writers = {
        "engine": "engine",
        "engine, compiled": "compiled_engine",
        "transformers, static cache": "transformers_static",
        "transformers, continuous batching": "transformers_continuous",
        "vLLM": "vllm",
    }
    rates = {name: line(f"{key}_tokens_per_s") for name, key in writers.items()}
    return [
        plots.Panel(
            "Decoding: how near the engine comes to the bandwidth",
            "answers at once",
            "least time to read weights and keys over the time taken",
            {"whole engine": line("engine_of_limit"), "one step of the model": line("step_of_limit")},
            (1.0, "bandwidth limit"),
        ),
        plots.Panel(
            "Decoding: tokens per second",
            "answers at once",
            "tokens per second, all answers together",
            {name: points for name, points in rates.items() if points},
            log_values=True,
        ),
    ]


def timed(run: Callable[[int], Any], answer: int, device: str) -> float:
    """Seconds per token of a peer that writes `answer` tokens, after a run that warms it up."""
    run(answer)
    first = seconds(partial(run, 1), device, 1, warmups=0)
    whole = seconds(partial(run, answer), device, 1, warmups=0)
    return (whole - first) / (answer - 1)
