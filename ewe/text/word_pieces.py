"""The tokens of a BERT without transformers, whose import takes longer than reading a few texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

_PAD = "[PAD]"


class WordPieces:
    """What judges and encoders ask of a fast tokenizer of transformers, by its names.

    folder: with `tokenizer.json`, and `tokenizer_config.json` for model_max_length. Raises ValueError for files that
    hold something else, OSError for one that is not there. Not safe to call from several threads at once: how texts
    are cut is the tokenizer's own state.
    """

    pad_token = _PAD

    def __init__(self, folder: Path) -> None:
        self.model_max_length = int(json.loads((folder / "tokenizer_config.json").read_bytes())["model_max_length"])
        content = (folder / "tokenizer.json").read_text(encoding="utf-8")
        try:
            self._tokenizer = Tokenizer.from_str(content)
        except Exception as error:  # the package raises nothing more telling
            raise ValueError(f"{folder / 'tokenizer.json'} holds no tokenizer: {error}") from error
        self._tokenizer.no_padding()
        self._pad_id = self._tokenizer.token_to_id(_PAD)
        if self._pad_id is None:
            raise ValueError(f"{folder / 'tokenizer.json'} knows no {_PAD}")

    def __call__(
        self,
        texts: Sequence[str] | Sequence[tuple[str, str]],
        pairs: Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        split_special_tokens: bool = False,
        truncation: bool | str = False,
        max_length: int = 0,
        **_: object,
    ) -> dict[str, list[list[int]]]:
        """input_ids, token_type_ids and attention_mask of texts, or of pairs of texts.

        split_special_tokens: control tokens that a text spells out are plain text. truncation: "only_first", or True
        for the longer one, to max_length tokens.
        """
        self._tokenizer.encode_special_tokens = split_special_tokens
        if truncation:
            strategy = truncation if isinstance(truncation, str) else "longest_first"
            self._tokenizer.enable_truncation(max_length, strategy=strategy)
        else:
            self._tokenizer.no_truncation()
        inputs = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        encoded = self._tokenizer.encode_batch(inputs, add_special_tokens=add_special_tokens)
        return {
            "input_ids": [one.ids for one in encoded],
            "token_type_ids": [one.type_ids for one in encoded],
            "attention_mask": [one.attention_mask for one in encoded],
        }

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """The marks that stand around a text, or a pair of texts."""
        return int(self._tokenizer.num_special_tokens_to_add(pair))

    def pad(self, inputs: Sequence[dict[str, list[int]]], **_: object) -> dict[str, Tensor]:
        """The same [texts, longest], padded at their ends."""
        import torch

        longest = max(len(one["input_ids"]) for one in inputs)
        filler = {"input_ids": self._pad_id, "token_type_ids": 0, "attention_mask": 0}
        return {
            name: torch.tensor([[*one[name], *[fill] * (longest - len(one[name]))] for one in inputs])
            for name, fill in filler.items()
        }
