"""The built-in model's shape, its tokenizer's training text, and the loss."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from builtin_training.attention import NAME, Guide
from builtin_training.batch import Batch
from builtin_training.lesson_memory import LessonSettings
from builtin_training.lessons import sample_lesson
from builtin_training.tokenizer import train_tokenizer

VOCAB_SIZE = 2048
MAX_POSITIONS = 2048
HEAD_DIM = 64

GUIDE_WEIGHT = 0.3
"""Share of each guiding loss in the loss."""


def load_or_train_tokenizer(directory: Path, seed: int, lessons: int = 4000) -> PreTrainedTokenizerBase:
    """The tokenizer in `directory`; if there is none yet, it is trained on the text of `lessons` lessons."""
    if not (directory / "tokenizer.json").exists():
        rng = random.Random(f"{seed}/tokenizer")
        settings = LessonSettings(max_units=3)
        drawn = (sample_lesson(rng, settings) for _ in range(lessons))
        texts = (text for lesson in drawn for text in (lesson.text, *(" " + unit for unit in lesson.units)))
        train_tokenizer(texts, VOCAB_SIZE).save_pretrained(directory)
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(directory)
    return tokenizer


def build_model(tokenizer: PreTrainedTokenizerBase, layers: int, width: int) -> LlamaForCausalLM:
    """A Llama with random weights: `layers` layers of `width`, heads of 64 dimensions.

    Half of a head's dimensions turn too fast with the distance to compare names across units; 32 of them are too few.
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD_DIM,
        num_key_value_heads=width // HEAD_DIM,
        head_dim=HEAD_DIM,
        max_position_embeddings=MAX_POSITIONS,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    config._attn_implementation = NAME
    return LlamaForCausalLM(config)


def load_weights(model: LlamaForCausalLM, directory: Path) -> None:
    """Copies the weights of a model directory of the same shape into `model`."""
    model.load_state_dict(load_file(directory / "model.safetensors"), strict=False)
    model.tie_weights()


def losses_and_hits(model: LlamaForCausalLM, batch: Batch, device: str) -> tuple[Tensor, Guide, Tensor]:
    """(weighted mean cross-entropy in nats, guiding losses, share of copied-value tokens predicted right) of a batch,
    in bfloat16 with float32 weights; logits are computed at supervised tokens only.

    The guided layers leave room before them to gather names, and behind them to use what was found.
    """
    kind = torch.device(device).type
    guide = Guide({"subject": (1, 0), "companion": (1, 1), "copy": (model.config.num_hidden_layers - 2, 0)})
    targets, weights, is_value = (part.to(device) for part in (batch.targets, batch.weights, batch.is_value))
    with torch.autocast(kind, dtype=torch.bfloat16):
        hidden = model.model(
            input_ids=batch.input_ids.to(device),
            position_ids=batch.position_ids.to(device),
            use_cache=False,
            layout=batch.layout.to(device, torch.bfloat16),
            guide=guide,
        ).last_hidden_state
        logits = model.lm_head(hidden[0].index_select(0, batch.predict.to(device)))
    losses = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    hits = (logits.detach().argmax(-1) == targets) & is_value
    accuracy = hits.sum() / is_value.sum().clamp(min=1)
    return (losses * weights).sum() / weights.sum(), guide, accuracy
