"""The judge that is the writing chat model itself: asked for a letter, zero-shot, and believed as far as measured.

What it reads: its own chat template around passages, claim and question (`writer_calibration`). Its answer is never
written: the logits of the three letters after the prompt are compared.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import TemplateError
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer

from ewe.config.known_models import KNOWN_MODELS
from ewe.config.loading import WEIGHTS_LOCK
from ewe.config.setting_names import WRITER
from ewe.errors import JudgeError
from ewe.text.control_marks import control_tokens
from ewe.text.reasoning_marks import reasoning_marks
from ewe.text.sentences import SentenceSplitter
from ewe.verification.judges.base import Score
from ewe.verification.judges.cross_encoder import (
    CHARACTERS_PER_TOKEN,
    LEAST_EVIDENCE,
    by_length,
    choose_device,
    encodable,
    multiplies_bfloat16,
)
from ewe.verification.judges.protocol import INCONCLUSIVE, Pair, checked
from ewe.verification.judges.writer_calibration import INSTRUCTION, QUESTION, THRESHOLDS, WINDOW, Ask, Calibration

_log = logging.getLogger(__name__)
_LETTERS = "ABC"  # In the order of a judge's columns: supported, refuted, inconclusive.
_MAX_TOKENS = 1536  # Of a prompt: the window of 3,000 characters in an alphabet of few characters per token.
_PLACE = "PASSAGESANDCLAIM"  # Stands for both while the template is filled in; words of letters pass every template.


class LetterQuestion:
    """The question after a claim as token ids of one model; as safe to use from several threads as a tokenizer's copy.

    max_tokens: of a whole prompt. Raises JudgeError for a tokenizer without chat template, or without single tokens
    for the letters.
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        # Its own: whether special tokens are split is a state of a tokenizer, which other threads would meet.
        self._tokenizer = copy.deepcopy(tokenizer)
        before, after = _around(self._tokenizer)
        self._opening = self._ids(before, is_data=False) + self._ids(INSTRUCTION)
        self._ending = self._ids(QUESTION) + self._ids(after, is_data=False)
        self._max_tokens = min(max_tokens, _MAX_TOKENS)
        self._splitter = SentenceSplitter()
        control = set(control_tokens(self._tokenizer).values())
        # The unknown token stands for text that the vocabulary lacks, unless it ends or begins texts as well.
        unknown = {tokenizer.unk_token_id} - {tokenizer.bos_token_id, tokenizer.eos_token_id}
        self._forbidden = frozenset(control - unknown)
        self._forms = [self._letter_ids(letter) for letter in _LETTERS]
        self.labels = [token for forms in self._forms for token in forms]

    def ids(self, pair: Pair) -> list[int]:
        """The prompt; none for a claim that is empty or leaves no room for evidence.

        Evidence that is too long ends after a sentence. Control tokens that the texts spell are no such tokens here.
        """
        evidence, claim = pair
        question = self._data(f"\n\nClaim: {claim}\n") + self._ending
        room = self._max_tokens - len(self._opening) - len(question)
        if not claim.strip() or room < LEAST_EVIDENCE:
            return []
        return [*self._opening, *self._fitting(evidence, room), *question]

    def logits(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [pairs, 3] of the letters from the scores of `labels` [pairs, labels]: a letter's forms add up."""
        ends = np.cumsum([len(forms) for forms in self._forms])[:-1]
        return np.stack([np.logaddexp.reduce(part, axis=1) for part in np.split(scores, ends, axis=1)], axis=1)

    def _fitting(self, evidence: str, room: int) -> list[int]:
        """As many whole sentences as there is room for; of a first one that is too long, its beginning."""
        evidence = evidence[: room * CHARACTERS_PER_TOKEN]
        ids = self._data(evidence)
        if len(ids) <= room:
            return ids
        ends = [end for _, end in self._splitter.split(evidence)]
        sizes = [len(self._data(evidence[start:end])) for start, end in zip([0, *ends], ends, strict=False)]
        fitting = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
        return self._data(evidence[: ends[max(0, fitting - 1)]])[:room]

    def _letter_ids(self, letter: str) -> list[int]:
        """The tokens that are this letter, alone or after a space."""
        forms = [self._ids(form) for form in (letter, f" {letter}")]
        distinct = list(dict.fromkeys(ids[0] for ids in forms if len(ids) == 1))
        if not distinct:
            raise JudgeError(f"the model's tokenizer has no single token for the letter {letter}, so it is no judge")
        return distinct

    def _data(self, text: str) -> list[int]:
        return [token for token in self._ids(encodable(text)) if token not in self._forbidden]

    def _ids(self, text: str, is_data: bool = True) -> list[int]:
        ids: list[int] = self._tokenizer(
            text, add_special_tokens=False, split_special_tokens=is_data, verbose=False
        )["input_ids"]  # fmt: skip
        return ids


def _around(tokenizer: Any) -> tuple[str, str]:
    """What the chat template puts before and after what a user says, up to the model's answer."""
    if getattr(tokenizer, "chat_template", None) is None:
        raise JudgeError("the model has no chat template, so it cannot be asked to judge: set verification.judge")
    messages = [{"role": "user", "content": _PLACE}]
    try:  # A template that knows no thinking takes no notice of the word.
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
    except TemplateError as error:
        raise JudgeError(f"the model's chat template takes no single question: {error}") from error
    marks = reasoning_marks(tokenizer)
    before, place, after = (str(text) if marks is None else marks.closed(str(text))).partition(_PLACE)
    if not place:
        raise JudgeError("the model's chat template does not show what its user says, so it cannot be asked to judge")
    return before, after


class WriterJudge:
    """The calibrated probabilities of a chat model's letters, as far as they may be believed; else inconclusive.

    ask: the model; as safe from threads as that.
    """

    name = WRITER
    window, thresholds = WINDOW, THRESHOLDS

    def __init__(self, ask: Ask, calibration: Calibration) -> None:
        self._ask = ask
        self._calibration = calibration

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive. Raises JudgeError for NaN."""
        result = np.zeros((len(pairs), 3))
        result[:, INCONCLUSIVE] = 1.0
        logits = self._ask(pairs)
        is_asked = ~np.isnan(logits).any(axis=1)
        result[is_asked] = self._calibration.believed(logits[is_asked])
        return checked(result, len(pairs), self.name)


def asking(score: Score, tokenizer: Any, max_model_len: int) -> Ask:
    """Asks a model about pairs. Raises JudgeError for one without tokenizer or chat template.

    score: gives log-probabilities of tokens after prompts.
    """
    if tokenizer is None:
        raise JudgeError("this model has no tokenizer, so it cannot be asked to judge")
    question = LetterQuestion(tokenizer, max_model_len - 1)

    def ask(pairs: Sequence[Pair]) -> NDArray[np.float64]:
        ids = [question.ids(pair) for pair in pairs]
        rows = [row for row, one in enumerate(ids) if one]
        if len(rows) < len(ids):
            _log.warning("%d claims are empty or too long for the judge: inconclusive", len(ids) - len(rows))
        logits = np.full((len(pairs), 3), np.nan)
        if rows:
            scores = np.asarray(score([ids[row] for row in rows], question.labels), np.float64)
            if np.isnan(scores).any():
                raise JudgeError(f"judge {WRITER} gave NaN for {int(np.isnan(scores).any(1).sum())} claims")
            logits[rows] = question.logits(scores)
        return logits

    return ask


def load_writer(model: str, calibration: Calibration, device: str = "auto") -> WriterJudge:
    """The judge with weights of its own. model: a known model's name, a folder or a hub id.

    In bfloat16 on GPUs and on CPUs that multiply it fast, else in float32. Raises JudgeError if it cannot be read.
    """
    name = str(KNOWN_MODELS[model].folder if model in KNOWN_MODELS else Path(model).expanduser())
    local = Path(name).is_dir()
    name = name if local else model
    place = choose_device(device)
    dtype = torch.bfloat16 if place.type == "cuda" or multiplies_bfloat16(place) else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
        with WEIGHTS_LOCK:
            chat: Any = AutoModelForCausalLM.from_pretrained(
                name, local_files_only=local, use_safetensors=True, dtype=dtype, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise JudgeError(f"the model {model} cannot be read as the judge {WRITER}: {error}") from error
    longest = getattr(chat.config.get_text_config(), "max_position_embeddings", None) or _MAX_TOKENS
    return WriterJudge(asking(partial(_score_in_batches, chat.to(place).eval()), tokenizer, longest), calibration)


@torch.inference_mode()
def _score_in_batches(model: Any, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> NDArray[np.float64]:
    """float64 logits [prompts, labels] after the prompts; what pads their ends is never attended to."""
    result = np.zeros((len(prompts), len(labels)))
    for rows in by_length(dict(enumerate(map(len, prompts)))):
        padded = pad_sequence([torch.tensor(prompts[row]) for row in rows], batch_first=True)
        ends, which = np.unique([len(prompts[row]) - 1 for row in rows], return_inverse=True)
        given = {"input_ids": padded.to(model.device), "logits_to_keep": torch.tensor(ends, device=model.device)}
        logits = model(**given, use_cache=False).logits[np.arange(len(rows)), which]
        result[rows] = logits[:, list(labels)].float().cpu().numpy()
    return result
