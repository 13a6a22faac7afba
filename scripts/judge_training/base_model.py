"""The chat model as judge: its weights, the adapter that is trained, and the logits of the three answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from chat_model_files import place_of
from numpy.typing import NDArray
from peft import LoraConfig, get_peft_model
from peft.helpers import disable_input_dtype_casting
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from ewe.verification.judges.base import answer_ids

BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""What the adapter says that it belongs to, wherever the weights were read from."""

_READ_BATCH_TOKENS = 65536
_SORTED_BATCHES = 30  # So many batches are sorted by length together: little padding, yet the order stays random.


class BaseModel:
    """A causal model with a LoRA adapter on every linear layer; the rest is frozen, in bfloat16 on a GPU."""

    def __init__(self, model: Any, tokenizer: Any, rank: int, dropout: float, device: str) -> None:
        self.tokenizer = tokenizer
        self.device = torch.device(device)
        self.answers = answer_ids(tokenizer)
        config = LoraConfig(
            r=rank, lora_alpha=2 * rank, lora_dropout=dropout, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        self.peft = get_peft_model(model, config).to(self.device)
        config.base_model_name_or_path = BASE
        self.trained = nn.ParameterList(p for p in self.peft.parameters() if p.requires_grad)
        self._causal = self.peft.get_base_model()

    @classmethod
    def load(cls, path: Path, *, rank: int, dropout: float, seed: int, device: str) -> BaseModel:
        """The model in a folder or in a GGUF file, with a new adapter drawn from `seed`."""
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        model = AutoModelForCausalLM.from_pretrained(**place_of(path), local_files_only=True, dtype=dtype)
        torch.manual_seed(seed)
        return cls(model.to(dtype), load_tokenizer(path), rank, dropout, device)

    def logits(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """float32 logits [pairs, 3] of the answers after the prompts; padding at the end is never attended to."""
        width = max(map(len, ids))
        padded = torch.zeros(len(ids), width, dtype=torch.long)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = torch.as_tensor(one)
        ends = torch.tensor([len(one) - 1 for one in ids], device=self.device)
        padded = padded.to(self.device, non_blocking=True)
        # Autocast casts to bfloat16 anyway: peft's own cast to the adapter's float32 would only cost memory.
        with torch.autocast(self.device.type, torch.bfloat16), disable_input_dtype_casting(self.peft):
            states = self._causal.model(input_ids=padded, use_cache=False).last_hidden_state
        last = states[torch.arange(len(ids), device=self.device), ends].float()
        return last @ self._causal.lm_head.weight[self.answers].float().T

    @torch.inference_mode()
    def read(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """float32 logits [pairs, 3], in order; the model is left in evaluation mode."""
        self.peft.eval()
        made = np.zeros((len(ids), 3), np.float32)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]), reverse=True)
        for rows in grouped_by_tokens(order, [len(one) for one in ids], _READ_BATCH_TOKENS):
            made[rows] = self.logits([ids[row] for row in rows]).cpu().numpy()
        return made

    def save(self, directory: Path) -> None:
        """Writes the adapter in peft's format, its matrices in bfloat16."""
        save_adapter(self.peft, self.trained, directory)


def save_adapter(model: Any, trained: nn.ParameterList, directory: Path) -> None:
    """Writes the adapter of a peft model in peft's format, its matrices in bfloat16; the model stays as it is."""
    own = [parameter.detach().clone() for parameter in trained]
    for parameter in trained:
        parameter.data = parameter.data.to(torch.bfloat16)
    model.save_pretrained(directory, save_embedding_layers=False)
    for parameter, data in zip(trained, own, strict=True):
        parameter.data = data


def load_tokenizer(path: Path) -> PreTrainedTokenizerBase:
    """The tokenizer in a folder or in a GGUF file."""
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(**place_of(path), local_files_only=True)
    return tokenizer


def grouped_by_tokens(order: Sequence[int], lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Runs of `order` of at most `most` padded tokens."""
    rows: list[int] = []
    width = 0
    for row in order:
        width = max(width, lengths[row])
        if rows and width * (len(rows) + 1) > most:
            yield rows
            rows, width = [], lengths[row]
        rows.append(row)
    if rows:
        yield rows


def training_batches(rng: Random, lengths: Sequence[int], most: int) -> list[list[int]]:
    """Batches of rows of like lengths, of at most `most` padded tokens, in random order."""
    order = rng.sample(range(len(lengths)), len(lengths))
    mean = max(1, sum(lengths) // max(1, len(lengths)))
    stretch = max(1, _SORTED_BATCHES * most // mean)
    batches: list[list[int]] = []
    for start in range(0, len(order), stretch):
        chunk = sorted(order[start : start + stretch], key=lambda row: lengths[row])
        batches.extend(grouped_by_tokens(chunk, lengths, most))
    rng.shuffle(batches)
    return batches
