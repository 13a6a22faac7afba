"""Teaches a chat model to read memory units in parallel: a LoRA adapter, trained with the engine's attention.

Run by hand: `python scripts/train_memory_reader.py --model FOLDER_OR_GGUF --out DIR --minutes 7`; a run that was killed
goes on where its last checkpoint was. `--evaluate-only` measures the adapter that lies in DIR. Data: the sets in
../shared/data and any JSONL of the form in reader_training/records.py. SQuAD 2 and XQuAD measure, and train nothing.
Data, packing, model, loop and measures are in scripts/reader_training/.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch
from reader_training.batches import Batches, Shape
from reader_training.chat import own_answers, prompts
from reader_training.evaluation import WAYS, Item, Way, measure, read_squad2, read_xquad
from reader_training.frames import Encoder
from reader_training.mixture import Mixture
from reader_training.model import add_adapter, compile_layers, load_model, load_tokenizer, save_adapter, with_adapter
from reader_training.records import read_readings
from reader_training.sources import read_sources
from reader_training.training import Settings, Training
from transformers import PreTrainedModel

ROOT = Path(__file__).resolve().parents[1]
_PROBED = Way("units", 4)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder or GGUF file of the chat model")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "reader")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--extra", type=Path, action="append", default=[], help="further JSONL of questions")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=7.0, help="of training, all starts together")
    parser.add_argument("--steps", type=int, default=0, help="instead of minutes")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--peak-lr", type=float, default=1.5e-3)
    parser.add_argument("--teacher-weight", type=float, default=0.3)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048, help="tokens per row")
    parser.add_argument("--unit-tokens", type=int, default=256)
    parser.add_argument("--attention", choices=("sdpa", "flex_attention"), default="sdpa")
    parser.add_argument("--compile", action="store_true", help="compile the blocks (CUDA)")
    parser.add_argument("--chats", type=int, default=480, help="everyday prompts that the model answers itself first")
    parser.add_argument("--workers", type=int, default=min(8, (os.cpu_count() or 1) - 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--squad2", type=int, default=300, help="questions of SQuAD 2 to measure with")
    parser.add_argument("--xquad", type=int, default=400, help="questions of XQuAD to measure with")
    parser.add_argument("--measure", choices=("adapter", "base", "both", "none"), default="both")
    parser.add_argument("--evaluate-only", action="store_true", help="train nothing")
    parser.add_argument("--smoke", action="store_true", help="a few small steps, for a try on a CPU")
    args = parser.parse_args(arguments)
    if args.smoke:
        args.steps, args.rows, args.width, args.chats, args.workers = args.steps or 4, 1, 1024, 4, 0
        args.squad2 = args.xquad = 2
    return args


class Run:
    """One run: its model, tokenizer, data and measures."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.device = args, torch.device(args.device)
        self.encoder = Encoder(load_tokenizer(args.model), args.unit_tokens)
        self.adapter: Path = args.out / "adapter"
        self._base = load_model(args.model, self.device)

    def base(self) -> PreTrainedModel:
        """A copy of the model as it is on disk."""
        return copy.deepcopy(self._base)

    @cached_property
    def squad2(self) -> list[Item]:
        """What choices are made with."""
        return read_squad2(self.args.data, self.args.squad2)

    def train(self) -> None:
        """Trains, or goes on training, and writes the adapter."""
        args, teacher = self.args, self.base()
        chats = own_answers(teacher, self.encoder, prompts(args.chats, args.seed), args.out / "chat.json")
        extra = [reading for path in args.extra for reading in read_readings(path)]
        mixture = Mixture(read_sources(args.data, extra), chats)
        batches = Batches(mixture, self.encoder, Shape(args.rows, args.width), args.seed)
        student = add_adapter(self.base(), args.rank, args.seed)
        inner = student.get_base_model()
        settings = Settings(
            args.minutes,
            args.steps,
            args.peak_lr,
            args.teacher_weight,
            args.attention,
            args.workers,
        )
        for model in (inner, teacher):
            model.set_attn_implementation(args.attention)
            if args.compile:
                compile_layers(model)
        Training(
            student, teacher, batches, settings, args.out / "checkpoint.safetensors", lambda: self._probe(inner)
        ).run()
        save_adapter(self.adapter, student, args.model.stem)

    def _probe(self, model: PreTrainedModel) -> str:
        """A few questions of SQuAD 2 in the midst of the training, without its compiled blocks."""
        model.set_attn_implementation("sdpa")
        with (
            torch.compiler.set_stance("force_eager"),
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"),
        ):
            found = measure(model, self.encoder, self.squad2[::3], _PROBED)
        model.set_attn_implementation(self.args.attention)
        return f"squad2, {_PROBED}: {found['right']} of {found['of']}"

    def evaluate(self) -> dict[str, object]:
        """All ways of giving passages, with and without the adapter, on both sets; written to figures.json."""
        figures: dict[str, object] = {}
        sets = {"xquad": read_xquad(self.args.data, self.args.xquad), "squad2": self.squad2}
        names = {"none": (), "both": ("adapter", "base")}.get(self.args.measure, (self.args.measure,))
        for name in names:
            model = with_adapter(self.base(), self.adapter) if name == "adapter" else self.base()
            for way in WAYS:
                for set_name, items in sets.items():
                    started = time.perf_counter()
                    found = measure(model, self.encoder, items, way)
                    figures[f"{set_name}, {name}, {way}"] = found
                    share = f"{found['right']} of {found['of']} ({found['low']} to {found['high']})"
                    print(f"{set_name}, {name}, {way}: {share}, {time.perf_counter() - started:.1f} s", flush=True)
                    (self.args.out / "figures.json").write_text(
                        json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
                    )
        return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains and measures."""
    args = parse_arguments(arguments)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    args.out.mkdir(parents=True, exist_ok=True)
    run = Run(args)
    if not args.evaluate_only:
        run.train()
        if run.device.type == "cuda":
            torch.cuda.empty_cache()
    run.evaluate()


if __name__ == "__main__":
    main()
