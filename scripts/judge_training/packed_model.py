"""A causal language model that judges all claims of a pack in one pass: they share the passages, not each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from chat_model_files import place_of
from peft import LoraConfig, PeftModel, get_peft_model
from peft.helpers import disable_input_dtype_casting
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.verification.judges.base import answer_ids
from judge_training.base_model import save_adapter
from judge_training.claim_corpus import Pack

Ids = tuple[list[int], list[list[int]]]
"""Token ids of a pack: those that all claims share, and those of each claim."""

_NOBODY = -1  # Owner of padding.


class PackedModel:
    """A causal model with a LoRA adapter on every linear layer; the rest is frozen, perhaps in bfloat16."""

    def __init__(
        self, model: Any, tokenizer: Any, adapter: Path | None, rank: int, first_layer: int, device: str = "cpu"
    ) -> None:
        self.tokenizer = tokenizer
        self.device = torch.device(device)
        self.answers = answer_ids(tokenizer)
        if adapter is None:
            layers = list(range(first_layer, model.config.num_hidden_layers))
            names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
            config = LoraConfig(
                r=rank, lora_alpha=2 * rank, target_modules=names, layers_to_transform=layers, task_type="CAUSAL_LM"
            )
            self.module = get_peft_model(model, config)
        else:
            self.module = PeftModel.from_pretrained(model, adapter, is_trainable=True)
            for part in self.module.modules():
                if isinstance(part, nn.Dropout):
                    part.p = 0.0
        self.module = self.module.to(self.device)
        adapted = [(name, parameter) for name, parameter in self.module.named_parameters() if parameter.requires_grad]
        self._adapter = nn.ParameterList(parameter for _, parameter in adapted)
        for name, parameter in adapted:
            parameter.data = parameter.data.float()
            parameter.requires_grad_(_layer_of(name) >= first_layer)
        self.trained = nn.ParameterList(p for p in self._adapter if p.requires_grad)
        self._causal = self.module.get_base_model()

    @classmethod
    def load(
        cls,
        path: Path,
        adapter: Path | None,
        rank: int,
        first_layer: int,
        seed: int,
        device: str = "cpu",
        bfloat16: bool = False,
    ) -> PackedModel:
        """The model in a folder or GGUF file, with the adapter in a folder or a new one drawn from `seed`.

        bfloat16: its matrices and products, as always on a GPU.
        """
        dtype = torch.bfloat16 if bfloat16 or device == "cuda" else torch.float32
        attention = "eager" if device == "cpu" else "sdpa"  # which a CPU is slow to go back through
        model = AutoModelForCausalLM.from_pretrained(
            **place_of(path), local_files_only=True, dtype=dtype, attn_implementation=attention
        )
        tokenizer = AutoTokenizer.from_pretrained(**place_of(path), local_files_only=True)
        torch.manual_seed(seed)
        return cls(model, tokenizer, adapter, rank, first_layer, device)

    def ids(self, pack: Pack, most_evidence: int = 700) -> Ids:
        """The token ids of a pack; evidence is cut to so many tokens."""
        texts = [claim_text(claim.text, claim.before) for claim in pack.claims]
        found = self.tokenizer(["Evidence: " + pack.evidence, *texts], add_special_tokens=False)["input_ids"]
        return found[0][:most_evidence], found[1:]

    def logits(self, packs: Sequence[Ids]) -> Tensor:
        """float32 logits [claims of all packs, 3] of the answers after each claim."""
        rows = [shared + [token for one in own for token in one] for shared, own in packs]
        ids = padded(rows, 0).to(self.device)
        positions = padded([_positions(*pack) for pack in packs], 0).to(self.device)
        mask = _mask(padded([_owners(*pack) for pack in packs], _NOBODY).to(self.device), self._causal.dtype)
        in_bfloat16 = torch.autocast(self.device.type, torch.bfloat16, enabled=self._causal.dtype == torch.bfloat16)
        with in_bfloat16, disable_input_dtype_casting(self.module):
            states = self._causal.model(
                input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False
            ).last_hidden_state
        row, end = zip(*((n, end) for n, pack in enumerate(packs) for end in _ends(*pack)), strict=True)
        last = states[list(row), list(end)].float()
        return last @ self._causal.lm_head.weight[self.answers].float().T

    def save(self, directory: Path, name: str | None) -> None:
        """Writes the adapter in peft's format, its matrices in bfloat16; name: what it calls its model."""
        self.module.peft_config["default"].base_model_name_or_path = name
        save_adapter(self.module, self._adapter, directory)


def _layer_of(name: str) -> int:
    """The layer that a parameter of this name belongs to."""
    return int(name.split(".layers.")[1].split(".")[0])


def claim_text(claim: str, before: str = "") -> str:
    """What follows the evidence."""
    told = f"\nBefore: {before}" if before else ""
    return f"{told}\nClaim: {claim}\nThe claim is"


def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """int64 [rows, longest], with `value` behind the shorter ones."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


def _positions(shared: Sequence[int], own: Sequence[Sequence[int]]) -> list[int]:
    """Each claim follows the shared tokens."""
    start = len(shared)
    return [*range(start), *(start + at for one in own for at in range(len(one)))]


def _owners(shared: Sequence[int], own: Sequence[Sequence[int]]) -> list[int]:
    """0 for what is shared, else the number of the claim."""
    return [*[0] * len(shared), *(number for number, one in enumerate(own, 1) for _ in one)]


def _ends(shared: Sequence[int], own: Sequence[Sequence[int]]) -> Iterator[int]:
    """Where the last token of each claim is."""
    return (len(shared) + end - 1 for end in accumulate(map(len, own)))


def _mask(owners: Tensor, dtype: torch.dtype) -> Tensor:
    """dtype [packs, 1, tokens, tokens], to be added to scores: causal, and no claim sees another.

    Padding sees what is shared, too: a row without anything to see could be NaN.
    """
    asking, asked = owners[:, :, None], owners[:, None, :]
    visible = ((asking == asked) | (asked == 0)).tril()
    return torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, -1e9)[:, None]
