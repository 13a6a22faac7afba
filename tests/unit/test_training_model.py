"""The model that the package ships: its files, and that it does what it was trained for."""

import random
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerBase

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from builtin_training import attention
from builtin_training.examples import LessonExamples
from builtin_training.lessons import sample_lesson
from builtin_training.probe import PROBE_SEED, measure, probe_settings

from ewe.config import Config

MODEL = Path(__file__).resolve().parents[2] / "ewe" / "evaluation" / "world" / "model"
SETTINGS = Config.from_yaml(MODEL.parent / "builtin.yaml")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(MODEL)


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    attention.register()
    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation=attention.NAME).eval()


def test_files_are_small_and_hold_no_pickle() -> None:
    files = [path for path in MODEL.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 16_000_000
    assert {path.suffix for path in files} <= {".json", ".jinja", ".md", ".safetensors"}


def test_settings_are_those_of_the_training(tokenizer: PreTrainedTokenizerBase) -> None:
    assert SETTINGS.memory.unit_template == " {title}: {text}"
    source = LessonExamples(tokenizer, unit_tokens=10_000)
    longest = max(
        len(unit)
        for seed in range(200)
        for unit in source.encode(sample_lesson(random.Random(seed), probe_settings(8))).units
    )
    assert longest <= SETTINGS.memory.unit_tokens


@pytest.mark.parametrize(("num_units", "at_least"), [(1, 0.96), (8, 0.93)])
def test_copies_values_from_the_right_unit_as_often_as_its_readme_says(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, num_units: int, at_least: float
) -> None:
    source = LessonExamples(tokenizer, SETTINGS.memory.unit_tokens)
    rng = random.Random(PROBE_SEED)
    examples = [source.encode(sample_lesson(rng, probe_settings(num_units))) for _ in range(16)]
    hits = [right for _, _, right in measure(model, examples, SETTINGS.memory.unit_tokens)]
    assert sum(hits) >= at_least * len(hits)
