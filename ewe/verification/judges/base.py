"""Judges that are chat models with a LoRA adapter, which answer "true", "false" or "unknown"; "base" and "reader" are
such judges.

Layout of a judge's folder: peft's `adapter_config.json` (which names the chat model) and `adapter_model.safetensors`,
`judge.json` and README.md, the card. judge.json: the temperature that calibrates the probabilities; max_tokens of a
prompt; max_characters of evidence, for a judge that was trained to read passages together and the sentence before the
claim; supported and refuted, the probabilities from which on it gives a verdict, where they were measured. The chat
model's own weights lie elsewhere.

In the prompt the evidence comes first, so that the claims about one passage share their prompts' beginning. Its parts
are tokenised apart, so that the cut never falls into the claim.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.config.loading import WEIGHTS_LOCK
from ewe.config.lora import merge_adapter
from ewe.config.setting_names import READER
from ewe.errors import ConfigError, JudgeError
from ewe.verification.judges.checkpoints import (
    Head,
    JudgeSettings,
    base_adapter_path,
    base_model_path,
    check_adapter,
    check_base,
    named_model,
    read_settings,
    reader_adapter_path,
)
from ewe.verification.judges.cross_encoder import (
    CHARACTERS_PER_TOKEN,
    LEAST_EVIDENCE,
    by_length,
    choose_device,
    encodable,
    multiplies_bfloat16,
)
from ewe.verification.judges.protocol import INCONCLUSIVE, Pair, checked

ANSWERS = (" true", " false", " unknown")
"""What the model goes on with, in the order of a judge's columns: supported, refuted, inconclusive."""

_EVIDENCE = "Evidence:"
_CLAIM = "\nClaim: {claim}\nThe claim is"


def answer_ids(tokenizer: Any) -> list[int]:
    """The token ids [3] of ANSWERS. Raises ValueError if one of them is more than one token of this tokenizer."""
    answer_token_ids = [_ids(tokenizer, [answer])[0] for answer in ANSWERS]
    if any(len(ids) != 1 for ids in answer_token_ids):
        raise ValueError(f"the tokenizer has no single tokens for {', '.join(map(repr, ANSWERS))}")
    return [ids[0] for ids in answer_token_ids]


def encode_pairs(tokenizer: Any, pairs: Sequence[Pair], max_tokens: int) -> list[list[int]]:
    """Per (evidence, claim) the ids of its prompt, at most `max_tokens`, of which only evidence is cut at its end.

    Control tokens spelled out in the texts are plain text. A pair whose claim is empty or leaves no room for evidence
    has no ids.
    """
    if not pairs:
        return []
    [opening] = _ids(tokenizer, [_EVIDENCE])
    limit = max_tokens * CHARACTERS_PER_TOKEN
    evidence = _ids(tokenizer, [" " + evidence[:limit] for evidence, _ in pairs])
    claims = _ids(tokenizer, [_CLAIM.format(claim=claim) for _, claim in pairs])
    made = []
    for (_, claim), evidence_ids, claim_ids in zip(pairs, evidence, claims, strict=True):
        room = max_tokens - len(opening) - len(claim_ids)
        fits = claim.strip() and room >= LEAST_EVIDENCE
        made.append([*opening, *evidence_ids[:room], *claim_ids] if fits else [])
    return made


def _ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    clean = list(map(encodable, texts))
    ids: list[list[int]] = tokenizer(clean, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return ids


_log = logging.getLogger(__name__)
Score = Callable[[Sequence[Sequence[int]], Sequence[int]], ArrayLike]
"""Prompts and token ids to the logits, or log-probabilities, of these tokens after each prompt [prompts, tokens]."""


class CausalJudge:
    """Probabilities of the next word of a causal language model after the prompt, among its three answers.

    score: asks the model, with the adapter in it. Evidence that makes the prompt longer than settings.max_tokens is cut
    at its end, the claim never is: one that leaves no room is inconclusive. As safe to call from several threads as
    `score`.
    """

    def __init__(self, score: Score, tokenizer: Any, settings: JudgeSettings, name: str = "base") -> None:
        self._score = score
        self._tokenizer = tokenizer
        self._answers = answer_ids(tokenizer)
        self._head = Head(tuple(range(len(ANSWERS))), settings.temperature)
        self._max_tokens = settings.max_tokens
        self.name = name
        self.window = settings.window
        self.thresholds = settings.thresholds

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive. Raises JudgeError for NaN."""
        result = np.zeros((len(pairs), 3))
        result[:, INCONCLUSIVE] = 1.0
        ids = encode_pairs(self._tokenizer, pairs, self._max_tokens)
        if without := sum(not one for one in ids):
            _log.warning("%d claims are empty or too long for %s: inconclusive", without, self.name)
        fitting = [row for row, one in enumerate(ids) if one]
        if fitting:
            logits = np.asarray(self._score([ids[row] for row in fitting], self._answers), np.float32)
            result[fitting] = self._head.probabilities(logits)
        return checked(result, len(pairs), self.name)


def _score_in_batches(model: Any, prompts: Sequence[Sequence[int]], answers: Sequence[int]) -> NDArray[np.float32]:
    logits = np.zeros((len(prompts), len(answers)), np.float32)
    for rows in by_length(dict(enumerate(map(len, prompts)))):
        logits[rows] = _logits(model, [prompts[row] for row in rows], answers).cpu().numpy()
    return logits


@torch.inference_mode()
def _logits(model: Any, prompts: Sequence[Sequence[int]], answers: Sequence[int]) -> Tensor:
    """float32 logits [prompts, answers] after the prompts; what pads their ends is never attended to."""
    place = model.device
    padded = torch.zeros(len(prompts), max(map(len, prompts)), dtype=torch.long)
    for row, one in enumerate(prompts):
        padded[row, : len(one)] = torch.as_tensor(one)
    ends = torch.tensor([len(one) - 1 for one in prompts], device=place)
    states = model.model(input_ids=padded.to(place), use_cache=False).last_hidden_state
    last = states[torch.arange(len(prompts), device=place), ends].float()
    logits: Tensor = last @ model.lm_head.weight[list(answers)].float().T
    return logits


def load_base(device: str = "auto", folder: Path | None = None, model: Path | None = None) -> CausalJudge:
    """The base judge, or another adapter of the same layout in `folder` on the chat model in `model`.

    Raises JudgeError if something is missing or damaged.
    """
    folder, model = folder or base_adapter_path(), model or base_model_path()
    check_base(folder, model)
    return _load(folder, str(model), device, "base")


def load_reader(device: str = "auto", model: str | None = None) -> CausalJudge:
    """The reading judge. model: the folder or hub id of its chat model, in place of the one that it names.

    Raises JudgeError if something is missing or damaged.
    """
    return load_adapter_judge(reader_adapter_path(), model, device, READER)


def load_adapter_judge(
    folder: Path, model: str | None = None, device: str = "auto", name: str | None = None
) -> CausalJudge:
    """The judge in a folder. model: the folder or hub id of its chat model, in place of the one that it names.

    name: of the judge, the folder's if there is none. Raises JudgeError if something is missing or damaged, or the
    adapter is for another model.
    """
    check_adapter(folder)
    return _load(folder, model or named_model(folder), device, name or folder.name)


def _load(folder: Path, model: str, device: str, name: str) -> CausalJudge:
    """In bfloat16 on GPUs and on CPUs that multiply it fast, else in float32."""
    settings = read_settings(folder)
    place = choose_device(device)
    dtype = torch.bfloat16 if place.type == "cuda" or multiplies_bfloat16(place) else torch.float32
    local = Path(model).is_dir()
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=local)
        with WEIGHTS_LOCK:
            chat = AutoModelForCausalLM.from_pretrained(
                model, local_files_only=local, use_safetensors=True, dtype=torch.float32, trust_remote_code=False
            )
        merged = merge_adapter(chat, folder, dtype).to(place).eval()
        return CausalJudge(partial(_score_in_batches, merged), tokenizer, settings, name)
    except (OSError, ValueError, KeyError, RuntimeError, ConfigError) as error:
        advice = "" if local else "; a folder with that model can be named with verification.judge_model"
        raise JudgeError(f"the judge {name} cannot be read ({folder} on the model {model}): {error}{advice}") from error
