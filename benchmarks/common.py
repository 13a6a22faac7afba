"""What every benchmark shares: arguments, timing, synthetic models and prompts, and the closing JSON line."""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

from benchmarks.shapes import LLAMA, SMOLLM2_135M
from ewe.cli.collect_env import environment
from ewe.config import Dtype

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Size:
    """How big a run is: the model's shape, and memory and text lengths in tokens."""

    name: str
    model: dict[str, Any]
    units: int
    unit_tokens: int
    prompt_tokens: int
    dtype: Dtype


_LLAMA_100M: dict[str, Any] = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
_LLAMA_TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
}
SMOKE = Size("smoke", _LLAMA_TINY, units=2, unit_tokens=32, prompt_tokens=8, dtype="float32")
CPU = Size("100m", _LLAMA_100M, units=8, unit_tokens=256, prompt_tokens=64, dtype="float32")
GPU = Size("llama-3.1-8b", LLAMA["8b"], units=8, unit_tokens=256, prompt_tokens=64, dtype="bfloat16")
SIZES = {
    "100m": CPU,
    "135m": replace(CPU, name="smollm2-135m", model=SMOLLM2_135M),
    "1b": replace(GPU, name="llama-3.2-1b", model=LLAMA["1b"]),
    "8b": GPU,
}


def parse_arguments(
    description: str | None, add: Callable[[argparse.ArgumentParser], object] | None = None
) -> argparse.Namespace:
    """--device cpu|cuda, --smoke (tiny sizes, a check that the script runs), --repeats, --out, and what `add` adds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: shows that the script runs, measures nothing")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs, of which the median counts")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to keep the JSON document too")
    if add is not None:
        add(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.repeats = 1
    return arguments


def pick_size(arguments: argparse.Namespace, sizes: Mapping[str, Size] = SIZES) -> Size:
    """The size for the device: a model of about 100 M parameters on a CPU, Llama-3.1-8B's shape on a GPU.

    Where a benchmark has --shape, the one of `sizes` that it names; on a CPU always in float32.
    """
    if arguments.smoke:
        return SMOKE
    shape = getattr(arguments, "shape", None)
    if shape is not None:
        return replace(sizes[shape], dtype="float32") if arguments.device == "cpu" else sizes[shape]
    return CPU if arguments.device == "cpu" else GPU


def seconds(function: Callable[[], object], device: str, repeats: int = 3, warmups: int = 1) -> float:
    """Median wall time of `function` in seconds over `repeats` runs, after `warmups` runs that do not count."""
    for _ in range(warmups):
        function()
    times = []
    for _ in range(repeats):
        synchronize(device)
        start = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def synchronize(device: str) -> None:
    """Waits until the device has done all that was asked of it."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def write_model_folder(folder: Path, size: Size, max_positions: int = 16384) -> Path:
    """A folder with a Llama-shaped config.json and a byte-level tokenizer, for `load_format: dummy`; returns it."""
    tokenizer = build_tokenizer(size.model["vocab_size"])
    config = LlamaConfig(
        **{"tie_word_embeddings": True, **size.model},
        max_position_embeddings=max_positions,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def build_tokenizer(vocab_size: int) -> Any:
    """One token per byte, then made-up words to fill `vocab_size`; one word in 15 starts a sentence.

    A text of n ASCII characters has n tokens, and what a random model samples falls into sentences of about 15 words.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<bos>", "<eos>", "<pad>"]
    words = [
        f".ĠWord{number}" if number % 15 == 0 else f"Ġword{number}"
        for number in range(vocab_size - len(alphabet) - len(specials))
    ]
    vocabulary = {token: index for index, token in enumerate(specials + alphabet + words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, **dict(zip(("bos_token", "eos_token", "pad_token"), specials, strict=True)))


def text_of(num_tokens: int, seed: int) -> str:
    """A made-up text of exactly `num_tokens` tokens (letters and spaces) under `build_tokenizer`."""
    generator = torch.Generator().manual_seed(seed)
    letters = "etaoin shrdlu cmfwyp "
    picks = torch.randint(len(letters), (num_tokens,), generator=generator).tolist()
    return "a" + "".join(letters[pick] for pick in picks[:-2]) + "a" if num_tokens > 1 else "a" * num_tokens


class Sections:
    """The parts of one benchmark: one that fails costs its own figures only, and an end by force at most one part's."""

    def __init__(self, name: str, arguments: argparse.Namespace, settings: dict[str, Any]) -> None:
        self._name, self._arguments, self._settings = name, arguments, settings
        self._figures: dict[str, Any] = {}
        self.left_out: dict[str, str] = {}

    def take(self, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Adds the figures that `measure` returns, or, if it raises, the reason why they are missing."""
        start = time.perf_counter()
        if torch.cuda.is_available():
            gc.collect()  # graphs and pools of the part before hang in cycles
            torch.cuda.empty_cache()
        try:
            figures = measure()
        except Exception as error:  # peers are foreign code, and one broken kernel must not cost the other figures
            lines = str(error).strip().splitlines() or [""]
            self.left_out[name] = f"{type(error).__name__}: {lines[0]}"[:300]
            print(f"-- {name} is left out: {self.left_out[name]}", flush=True)
            return
        for key, value in figures.items():
            print(f"{key:44} {value}")
        print(f"-- {name} took {time.perf_counter() - start:.1f} s", flush=True)
        self._figures |= figures
        keep(self._arguments, self._document() | {"unfinished": True})

    def close(self) -> dict[str, Any]:
        """Ends with the JSON line; returns the document."""
        document = self._document()
        keep(self._arguments, document)
        print(json.dumps(document), flush=True)
        return document

    def _document(self) -> dict[str, Any]:
        document = describe(self._name, self._arguments, self._settings, self._figures)
        return document | ({"left_out": self.left_out} if self.left_out else {})


def require(package: str) -> Any:
    """An optional peer; raises ImportError with a short reason where it is not installed."""
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"{package} is not installed")
    return importlib.import_module(package)


def report(
    name: str, arguments: argparse.Namespace, settings: dict[str, Any], figures: dict[str, Any]
) -> dict[str, Any]:
    """Prints the figures for people, then everything as one JSON document on the last line; returns the document."""
    for key, value in figures.items():
        print(f"{key:44} {value}")
    keep(arguments, document := describe(name, arguments, settings, figures))
    print(json.dumps(document), flush=True)
    return document


def keep(arguments: argparse.Namespace, document: dict[str, Any]) -> None:
    """Writes the document to the file that --out names, if any."""
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(document, indent=2) + "\n")


def describe(
    name: str, arguments: argparse.Namespace, settings: dict[str, Any], figures: dict[str, Any]
) -> dict[str, Any]:
    """The figures with all that is needed to read them."""
    facts = _environment()
    device = facts["gpus"][0] if arguments.device.startswith("cuda") else f"{facts['cpu']}, {facts['cpus']} cores"
    return {
        "benchmark": name,
        "smoke": arguments.smoke,
        "device": device,
        "threads": torch.get_num_threads(),
        "versions": {key: facts[key] for key in ("python", "ewe", "torch", "transformers", "triton", "numpy")},
        "commit": commit(),
        "repeats": arguments.repeats,
        "settings": settings,
        "figures": figures,
    }


@cache
def _environment() -> dict[str, Any]:
    return environment()


@cache
def commit() -> str:
    """The checkout's commit, with `+` after it if files differ from it; outside a checkout the variable GIT_COMMIT."""
    head = _git("rev-parse", "--short=12", "HEAD") or os.environ.get("GIT_COMMIT", "")
    return head + "+" if head and _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
