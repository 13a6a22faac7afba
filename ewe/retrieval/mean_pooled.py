"""The built-in sentence encoder on CPUs, without the package that can load every encoder.

Importing sentence-transformers brings transformers, scikit-learn, peft, a trainer and more, and takes longer than
everything else that a first search waits for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn.functional import normalize

from ewe.text.packed_bert import BertShape, PackedBert
from ewe.text.word_pieces import WordPieces

_BATCH_TOKENS = 4096  # per forward pass
_MODULES = ["Transformer", "Pooling", "Normalize"]


def is_mean_pooled(folder: Path) -> bool:
    """Whether a folder holds a BERT whose vectors are the means of its tokens, scaled to length 1, and nothing more."""
    try:
        modules, config = _read(folder / "modules.json"), _read(folder / "config.json")
        pooling, reading = (
            _read(folder / modules[1]["path"] / "config.json"),
            _read(folder / "sentence_bert_config.json"),
        )
        settings = _read(folder / "config_sentence_transformers.json")
        names = [module["type"].rpartition(".")[2] for module in modules]
        modes = {name for name, is_on in pooling.items() if name.startswith("pooling_mode") and is_on}
        BertShape.of(config)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # sentence-transformers says what is wrong
        return False
    is_cut = set(reading) == {"max_seq_length", "do_lower_case"} and not reading["do_lower_case"]
    return names == _MODULES and modes == {"pooling_mode_mean_tokens"} and is_cut and not settings.get("prompts")


def runs_on_cpu(device: str | None) -> bool:
    """Whether a model for this device (None: the GPU where there is one) computes on the CPU."""
    return device == "cpu" or (device is None and not torch.cuda.is_available())


class MeanPooledBert:
    """What is asked of a `SentenceTransformer`, of such a folder; vectors as its own, but for rounding in float32.

    Raises OSError, ValueError or KeyError for files that hold something else.
    """

    def __init__(self, folder: Path) -> None:
        shape = BertShape.of(_read(folder / "config.json"))
        self.tokenizer = WordPieces(folder)
        self.max_seq_length = int(_read(folder / "sentence_bert_config.json")["max_seq_length"])
        try:
            weights = load_file(folder / "model.safetensors")
        except SafetensorError as error:
            raise ValueError(f"{folder / 'model.safetensors'} is damaged: {error}") from error
        self._bert = PackedBert({name: weight.float() for name, weight in weights.items()}, shape)
        self._width = shape.width

    def get_embedding_dimension(self) -> int:
        """Numbers per vector."""
        return self._width

    def encode_query(self, texts: Sequence[str], prompt: str | None = None, **_: object) -> NDArray[np.float32]:
        """float32 [texts, dimension]; prompt: stands before every text."""
        return self.encode_document(texts, prompt)

    def encode_document(self, texts: Sequence[str], prompt: str | None = None, **_: object) -> NDArray[np.float32]:
        """float32 [texts, dimension]; prompt: stands before every text."""
        prompted = [f"{prompt or ''}{text}" for text in texts]
        encoded = self.tokenizer(prompted, truncation=True, max_length=self.max_seq_length)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        by_length = sorted(range(len(texts)), key=lengths.__getitem__, reverse=True)
        vectors = np.zeros((len(texts), self._width), np.float32)
        while by_length:
            together = max(1, _BATCH_TOKENS // lengths[by_length[0]])
            rows, by_length = by_length[:together], by_length[together:]
            vectors[rows] = self._means([{name: encoded[name][row] for name in encoded} for row in rows])
        return vectors

    def _means(self, inputs: list[dict[str, list[int]]]) -> NDArray[np.float32]:
        """float32 [texts, dimension] of one batch."""
        with torch.inference_mode():
            batch = self.tokenizer.pad(inputs)
            tokens = self._bert(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
            texts = torch.split(tokens, [len(one["input_ids"]) for one in inputs])
            means = torch.stack([text.mean(0) for text in texts])
            result: NDArray[np.float32] = normalize(means, dim=1).numpy()
        return result


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())
