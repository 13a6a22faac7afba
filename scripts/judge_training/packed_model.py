"""A causal language model that judges all claims of a pack in one pass: they share the passages, not each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from chat_model_files import place_of
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.verification.judges.base import answer_ids
from judge_training.base_model import save_adapter
from judge_training.claim_corpus import Pack

_HIDDEN = torch.finfo(torch.float32).min


class PackedModel:
    """A causal model with a LoRA adapter on every linear layer; the rest is frozen, in float32."""

    def __init__(self, model: Any, tokenizer: Any, adapter: Path | None, rank: int, first_layer: int) -> None:
        self.tokenizer = tokenizer
        self.answers = answer_ids(tokenizer)
        if adapter is None:
            layers = list(range(first_layer, model.config.num_hidden_layers))
            names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
            config = LoraConfig(
                r=rank, lora_alpha=2 * rank, target_modules=names, layers_to_transform=layers, task_type="CAUSAL_LM"
            )
            self.peft = get_peft_model(model, config)
        else:
            self.peft = PeftModel.from_pretrained(model, adapter, is_trainable=True)
            for part in self.peft.modules():
                if isinstance(part, nn.Dropout):
                    part.p = 0.0
        self.peft = self.peft.float()
        self.trained = nn.ParameterList(p for p in self.peft.parameters() if p.requires_grad)
        self._causal = self.peft.get_base_model()

    @classmethod
    def load(cls, path: Path, adapter: Path | None, rank: int, first_layer: int, seed: int) -> PackedModel:
        """The model in a folder or GGUF file, with the adapter in a folder or a new one drawn from `seed`."""
        model = AutoModelForCausalLM.from_pretrained(
            **place_of(path), local_files_only=True, dtype=torch.float32, attn_implementation="sdpa"
        )
        tokenizer = AutoTokenizer.from_pretrained(**place_of(path), local_files_only=True)
        torch.manual_seed(seed)
        return cls(model, tokenizer, adapter, rank, first_layer)

    def logits(self, pack: Pack, most_evidence: int = 700) -> Tensor:
        """float32 logits [claims, 3] of the answers after each claim; evidence is cut to so many tokens."""
        texts = [claim_text(claim.text, claim.before) for claim in pack.claims]
        found = self.tokenizer(["Evidence: " + pack.evidence, *texts], add_special_tokens=False)["input_ids"]
        return self.logits_of_ids(found[0][:most_evidence], found[1:])

    def logits_of_ids(self, shared: Sequence[int], own: Sequence[Sequence[int]]) -> Tensor:
        """The same from token ids: those that all claims share, and those of each claim."""
        ids = torch.tensor([[*shared, *(token for one in own for token in one)]])
        positions = torch.tensor([[*range(len(shared)), *(len(shared) + at for one in own for at in range(len(one)))]])
        ends = torch.tensor([len(one) for one in own]).cumsum(0) + len(shared) - 1
        mask = _mask(len(shared), [len(one) for one in own])
        states = self._causal.model(
            input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False
        ).last_hidden_state
        return states[0, ends] @ self._causal.lm_head.weight[self.answers].T

    def save(self, directory: Path, name: str | None) -> None:
        """Writes the adapter in peft's format, its matrices in bfloat16; name: what it calls its model."""
        self.peft.peft_config["default"].base_model_name_or_path = name
        save_adapter(self.peft, self.trained, directory)


def claim_text(claim: str, before: str = "") -> str:
    """What follows the evidence."""
    told = f"\nBefore: {before}" if before else ""
    return f"{told}\nClaim: {claim}\nThe claim is"


def _mask(shared: int, lengths: Sequence[int]) -> Tensor:
    """float32 [1, 1, tokens, tokens]: causal; what belongs to one claim is hidden from the others."""
    total = shared + sum(lengths)
    owner = torch.zeros(total, dtype=torch.long)
    owner[shared:] = torch.arange(1, len(lengths) + 1).repeat_interleave(torch.tensor(lengths))
    visible = (owner[None] == owner[:, None]) | (owner[None] == 0)
    visible &= torch.ones(total, total, dtype=torch.bool).tril()
    return torch.zeros(total, total).masked_fill(~visible, _HIDDEN)[None, None]
