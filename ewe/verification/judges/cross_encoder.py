"""Judging with a sequence-classification model of transformers that reads evidence and claim together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ewe.config.loading import WEIGHTS_LOCK, import_transformers
from ewe.config.registry import JUDGES
from ewe.config.setting_names import hint
from ewe.errors import JudgeError
from ewe.verification.judges.checkpoints import Head, check_head, read_head
from ewe.verification.judges.protocol import INCONCLUSIVE, Pair, checked

_log = logging.getLogger(__name__)
_MAX_TOKENS = 512
_BATCH_TOKENS = 4096  # Padded tokens per forward pass; larger batches gain nothing on CPUs and take memory on GPUs.
LEAST_EVIDENCE = 8  # Tokens of evidence without which nothing can be judged.
CHARACTERS_PER_TOKEN = 32  # Evidence beyond this is not even tokenised: the cut falls long before.


class CrossEncoderJudge:
    """Probabilities of a cross-encoder that was trained on (evidence, claim) pairs, in this order.

    model: a transformers model with `.logits` of [pairs, labels]; head: what the labels mean. Evidence beyond
    max_tokens (of the pair) is cut at its end, the claim never is: a claim that leaves no room for evidence is
    inconclusive. Control tokens spelled out in the texts are plain text. Safe to call from several threads.
    """

    def __init__(self, model: Any, tokenizer: Any, head: Head, name: str, max_tokens: int = _MAX_TOKENS) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._head = head
        self._name = name
        self._max_tokens = max_tokens
        self._lock = threading.Lock()  # A fast tokenizer keeps the truncation of the last call as its own state.

    @classmethod
    def load(cls, name: str, *, device: str = "auto", labels: Mapping[str, str] | None = None) -> CrossEncoderJudge:
        """The judge in a folder or on the hub; safetensors only, no code of its own is run.

        labels: its label names as supported, refuted or inconclusive, where they do not say so. Raises JudgeError if
        it cannot be read, has no trained classification head, or its labels are not understood.
        """
        import_transformers()
        # Here, because the built-in judge needs none of it.
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        config = _read(AutoConfig, name)
        check_head(config.problem_type, name)
        head = read_head({int(index): text for index, text in config.id2label.items()}, name, labels)
        tokenizer = _read(AutoTokenizer, name)
        model, report = _read(
            AutoModelForSequenceClassification, name, use_safetensors=True, output_loading_info=True, dtype="auto"
        )
        if report["missing_keys"]:
            # transformers would fill them with random numbers and go on.
            raise JudgeError(f"{name} lacks the weights {', '.join(sorted(report['missing_keys']))}: it is no judge")
        place = choose_device(device)
        # Half precision is slow on CPUs without instructions for it, and exact enough on GPUs.
        model = model.to(place) if place.type == "cuda" else model.float()
        return cls(model, tokenizer, head, name, min(_MAX_TOKENS, _own_limit(config, tokenizer)))

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive. Raises JudgeError for NaN."""
        result = np.zeros((len(pairs), 3))
        result[:, INCONCLUSIVE] = 1.0
        with self._lock:
            encoded = self._encode(pairs)
        for rows in self._batches(encoded):
            batch = self._tokenizer.pad([encoded[row] for row in rows], return_tensors="pt")
            inputs = {key: value.to(self._model.device) for key, value in batch.items()}
            with torch.inference_mode():
                logits = self._model(**inputs).logits
            result[rows] = self._head.probabilities(logits.float().cpu().numpy())
        return checked(result, len(pairs), self._name)

    def _encode(self, pairs: Sequence[Pair]) -> dict[int, dict[str, list[int]]]:
        """Model inputs per pair, by its index, of those whose claim leaves room for evidence."""
        if not pairs:
            return {}
        claims = self._tokenize([claim for _, claim in pairs], add_special_tokens=False)
        room = self._max_tokens - self._tokenizer.num_special_tokens_to_add(pair=True) - LEAST_EVIDENCE
        fitting = [index for index, ids in enumerate(claims["input_ids"]) if 0 < len(ids) <= room]
        if len(fitting) < len(pairs):
            _log.warning("%d claims are empty or too long for %s: inconclusive", len(pairs) - len(fitting), self._name)
        if not fitting:
            return {}
        limit = self._max_tokens * CHARACTERS_PER_TOKEN
        encoded = self._tokenize(
            [pairs[index][0][:limit] for index in fitting],
            [pairs[index][1] for index in fitting],
            truncation="only_first",
            max_length=self._max_tokens,
        )
        return {index: {key: encoded[key][row] for key in encoded} for row, index in enumerate(fitting)}

    def _tokenize(self, *texts: list[str], **options: Any) -> Any:
        clean = [[encodable(text) for text in column] for column in texts]
        return self._tokenizer(*clean, split_special_tokens=True, verbose=False, **options)

    def _batches(self, encoded: Mapping[int, Mapping[str, list[int]]]) -> Iterable[list[int]]:
        if self._tokenizer.pad_token is None:
            return [[row] for row in encoded]
        return by_length({row: len(inputs["input_ids"]) for row, inputs in encoded.items()})


def by_length(lengths: Mapping[int, int]) -> Iterator[list[int]]:
    """Rows in batches of like length in tokens, so that little is spent on padding."""
    rows: list[int] = []
    for row in sorted(lengths, key=lengths.__getitem__, reverse=True):
        if rows and lengths[rows[0]] * (len(rows) + 1) > _BATCH_TOKENS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def choose_device(name: str) -> torch.device:
    """The device of this name; "auto" is the GPU where there is one. Raises JudgeError if it is not usable."""
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    try:
        return torch.empty(0, device=chosen).device
    except (RuntimeError, AssertionError) as error:
        raise JudgeError(f"the judge's device {name!r} is not usable here: {error}") from error


def multiplies_bfloat16(place: torch.device) -> bool:
    """Whether a CPU has instructions for products in bfloat16; without them they are slower than in float32."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # absent from older versions of torch
    return place.type == "cpu" and any(getattr(torch.cpu, name, bool)() for name in names)


def _own_limit(config: Any, tokenizer: Any) -> int:
    """The longest input in tokens that model and tokenizer name; positions may begin after the padding's index."""
    positions = getattr(config, "max_position_embeddings", None) or _MAX_TOKENS
    offset = (config.pad_token_id or 0) + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
    return int(min(positions - offset, tokenizer.model_max_length))


def _read(auto_class: Any, name: str, **options: Any) -> Any:
    """`auto_class.from_pretrained`, its failures as JudgeError."""
    try:
        with WEIGHTS_LOCK:
            return auto_class.from_pretrained(name, trust_remote_code=False, **options)
    except Exception as error:  # transformers raises OSError, ValueError, KeyError and safetensors' own errors
        raise JudgeError(
            f"cannot load the judge {name!r} ({hint(name, JUDGES.names)}; models that classify sequences, with "
            f"safetensors weights): {error}"
        ) from error


def encodable(text: str) -> str:
    """The text without halves of surrogate pairs, on which tokenizers fail."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
