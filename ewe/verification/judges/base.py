"""The base judge: a chat model with a LoRA adapter of this package, which answers "true", "false" or "unknown".

Layout of the folder: peft's `adapter_config.json` and `adapter_model.safetensors`, `judge.json` (the temperature that
calibrates the probabilities) and README.md, the card. The chat model's own weights lie in the cache folder.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.errors import ConfigError, JudgeError
from ewe.lora import merge_adapter
from ewe.verification.judges.claim_prompt import ANSWERS, answer_ids, encode_pairs
from ewe.verification.judges.cross_encoder import choose_device, multiplies_bfloat16
from ewe.verification.judges.heads import Head
from ewe.verification.judges.lazy import BASE_SETTINGS, base_adapter_path, base_model_path, check_base
from ewe.verification.judges.protocol import INCONCLUSIVE, Pair, checked

_log = logging.getLogger(__name__)
_NAME = "base"
_MAX_TOKENS = 448  # Those of the longest pair in training.
_BATCH_TOKENS = 4096  # Padded tokens per forward pass; larger batches gain nothing on CPUs and take memory on GPUs.


class CausalJudge:
    """Probabilities of the next word of a causal language model after `claim_prompt`'s prompt, among its three answers.

    model: a causal model of transformers, adapter merged; temperature divides the logits. Evidence that makes the
    prompt longer than max_tokens is cut at its end, the claim never is: one that leaves no room is inconclusive. Safe
    to call from several threads.
    """

    def __init__(self, model: Any, tokenizer: Any, temperature: float, max_tokens: int = _MAX_TOKENS) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._answers = answer_ids(tokenizer)
        self._head = Head(tuple(range(len(ANSWERS))), temperature)
        self._max_tokens = max_tokens

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive. Raises JudgeError for NaN."""
        result = np.zeros((len(pairs), 3))
        result[:, INCONCLUSIVE] = 1.0
        ids = encode_pairs(self._tokenizer, pairs, self._max_tokens)
        if without := sum(not one for one in ids):
            _log.warning("%d claims are empty or too long for %s: inconclusive", without, _NAME)
        for rows in _batches(ids):
            result[rows] = self._head.probabilities(self._logits([ids[row] for row in rows]).cpu().numpy())
        return checked(result, len(pairs), _NAME)

    @torch.inference_mode()
    def _logits(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """float32 logits [pairs, 3] of the answers after the prompts; what pads their ends is never attended to."""
        place = self._model.device
        padded = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.long)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = torch.as_tensor(one)
        ends = torch.tensor([len(one) - 1 for one in ids], device=place)
        states = self._model.model(input_ids=padded.to(place), use_cache=False).last_hidden_state
        last = states[torch.arange(len(ids), device=place), ends].float()
        logits: Tensor = last @ self._model.lm_head.weight[self._answers].float().T
        return logits


def _batches(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Rows of prompts of like length, so that little is spent on padding; prompts without ids are left out."""
    rows: list[int] = []
    for row in sorted((row for row, one in enumerate(ids) if one), key=lambda row: len(ids[row]), reverse=True):
        if rows and len(ids[rows[0]]) * (len(rows) + 1) > _BATCH_TOKENS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def load_base(device: str = "auto", folder: Path | None = None, model: Path | None = None) -> CausalJudge:
    """The base judge, or another adapter of the same layout in `folder` on the chat model in `model`.

    In bfloat16 on GPUs and on CPUs that multiply it fast, else in float32. Raises JudgeError if something is missing or
    damaged.
    """
    folder, model = folder or base_adapter_path(), model or base_model_path()
    check_base(folder, model)
    place = choose_device(device)
    dtype = torch.bfloat16 if place.type == "cuda" or multiplies_bfloat16(place) else torch.float32
    try:
        temperature = float(json.loads((folder / BASE_SETTINGS).read_bytes())["temperature"])
        tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
        chat = AutoModelForCausalLM.from_pretrained(
            model, local_files_only=True, use_safetensors=True, dtype=torch.float32
        )
        return CausalJudge(merge_adapter(chat, folder, dtype).to(place), tokenizer, temperature)
    except (OSError, ValueError, KeyError, RuntimeError, ConfigError) as error:
        raise JudgeError(f"the base judge cannot be read ({folder} on the model in {model}): {error}") from error
