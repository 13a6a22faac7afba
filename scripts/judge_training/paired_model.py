"""The built-in cross-encoder as a model that reads passages together: one pass for each claim and its passages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from ewe.verification.judges.builtin_judge import read_model
from ewe.verification.judges.protocol import ReadingWindow
from judge_training.claim_corpus import Pack
from judge_training.claim_packs import MAX_CHARACTERS
from judge_training.export import export_judge
from judge_training.metrics import Calibration
from judge_training.packed_model import Ids, padded

_WINDOW = ReadingWindow(MAX_CHARACTERS)


class PairedModel:
    """All of the built-in judge's weights are trained; in float32, multiplied in bfloat16 on a GPU."""

    def __init__(self, folder: Path, seed: int, device: str = "cpu", max_tokens: int = 512) -> None:
        torch.manual_seed(seed)
        model, self.tokenizer = read_model(folder)
        self.device = torch.device(device)
        self.module = model.to(self.device)
        self.trained = torch.nn.ParameterList(self.module.parameters())
        self._max_tokens = max_tokens

    def ids(self, pack: Pack) -> Ids:
        """Nothing shared, and per claim `[CLS] evidence [SEP] claim [SEP]`; only evidence is cut."""
        evidence = [_WINDOW.evidence([pack.evidence], one.before) for one in pack.claims]
        claims = [" ".join(one.text.split()[:120]) for one in pack.claims]
        found = self.tokenizer(evidence, claims, truncation="only_first", max_length=self._max_tokens)
        return [], found["input_ids"]

    def logits(self, packs: Sequence[Ids]) -> Tensor:
        """float32 logits [claims of all packs, 3]."""
        ids = padded([one for _, own in packs for one in own], 0).to(self.device)
        is_end = ids == self.tokenizer.sep_token_id
        types = ((is_end.cumsum(1) - is_end.long()) == 1).long()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            logits: Tensor = self.module(input_ids=ids, token_type_ids=types, attention_mask=(ids != 0).long()).logits
        return logits.float()

    def save(self, directory: Path, name: str | None) -> None:
        """Writes the judge with int8 matrices; name: of nothing, it stands by itself."""
        export_judge(directory, self.module, self.tokenizer, Calibration(1.0, (0.0, 0.0, 0.0)), self._max_tokens)
