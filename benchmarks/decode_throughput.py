"""How fast the engine writes, against transformers' generate with the same weights and the documents in the prompt.

Batch 1: one prompt under k documents. Batch 16: sixteen prompts of 16 to 256 tokens, each under its own k documents,
whose answers have 16 to 256 tokens; transformers runs them as one left-padded batch until the longest is done, the
engine lets each leave when it is finished. A third run gives every answer the same length, so that the part of the gain
that comes from leaving early can be told from the rest. Reported: seconds for prefill (documents, prompt and the first
token), seconds for the decoding after it, answer tokens per second of decoding, and the ratios.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from benchmarks.common import Size, parse_arguments, pick_size, report, seconds, text_of, write_model_folder
from benchmarks.rig import load_synthetic
from ewe import LLM, SamplingParams


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt (token ids), its documents (texts) and the wanted answer length in tokens."""

    prompt: list[int]
    documents: list[str]
    max_tokens: int


class EnoughTokens(StoppingCriteria):  # type: ignore[misc]
    """Ends each row of transformers' batch at its own wanted length."""

    def __init__(self, wanted: torch.Tensor, prompt_length: int) -> None:
        self.wanted, self.prompt_length = wanted, prompt_length

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Bool [batch]: which rows are done."""
        return self.wanted <= input_ids.shape[1] - self.prompt_length


class Contest:
    """The engine and transformers with the same weights; each call writes all answers and returns nothing."""

    def __init__(self, size: Size, device: str, num_seqs: int) -> None:
        self.size, self.device, self.salt = size, device, 0
        loaded = load_synthetic(size, device)
        self.peer = loaded.model
        self.peer.set_attn_implementation("sdpa")
        self.peer.generation_config.eos_token_id = None
        tokens = num_seqs * (size.units * size.unit_tokens + 2 * 256 + 32)
        overrides = {
            "model": {"load_format": "dummy", "dtype": size.dtype, "device": device},
            "memory": {"retrieval_units": size.units, "verification_units": 0, "unit_tokens": size.unit_tokens},
            "cache": {"num_blocks": tokens // 16 + 1, "unit_cache": False},
            "policy": "plain",
        }
        with tempfile.TemporaryDirectory() as folder:
            name = str(write_model_folder(Path(folder), size))
            overrides["model"]["name"] = name
            self.llm = LLM(config=overrides)

    def requests(self, prompt_lengths: list[int], answer_lengths: list[int]) -> list[Request]:
        """Fresh requests, none of whose documents has been seen before."""
        made = []
        for prompt, answer in zip(prompt_lengths, answer_lengths, strict=True):
            self.salt += 1
            documents = [
                text_of(self.size.unit_tokens, self.salt * self.size.units + index) for index in range(self.size.units)
            ]
            prompt_ids = torch.randint(3, self.size.model["vocab_size"], (prompt,)).tolist()
            made.append(Request(prompt_ids, documents, answer))
        return made
