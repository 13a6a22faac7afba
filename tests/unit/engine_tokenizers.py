"""Tiny tokenizers for tests of the engine: byte-level, SentencePiece-like, and one whose tokens straddle sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

# Two, three and four bytes per character; the last ones are rare, so that no merge ever covers them.
TEXTS = (
    "The river Ouémé was named in 1897. It flows past Sørland, then to the sea.",
    "東京は日本の首都です。 She wrote «Lumière» — a novel. 🌊😀 Done!",
    "Naïve cafés, €12.50 each; Жуков came twice. The end.",
)


@lru_cache
def byte_level() -> PreTrainedTokenizerFast:
    """Byte-level BPE with few merges: most characters beyond ASCII take several tokens. Adds no BOS."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<eos>"])
    tokenizer.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


@lru_cache
def sentencepiece_like() -> PreTrainedTokenizerFast:
    """Like Llama 2's: spaces are part of tokens, unknown characters fall back to bytes; ids 1 and 2 are BOS and EOS."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    bytes_ = [f"<0x{value:02X}>" for value in range(256)]
    specials = ["<unk>", "<s>", "</s>", *bytes_]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, limit_alphabet=60)
    tokenizer.train_from_iterator([text.replace(" ", "\u2581") for text in TEXTS], trainer)
    # The bytes must be ordinary tokens: special ones are left out of decoded text.
    state = tokenizer.to_str()
    plain = Tokenizer.from_str(_without_special_bytes(state))
    plain.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=plain, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def _without_special_bytes(state: str) -> str:
    values = json.loads(state)
    values["added_tokens"] = [item for item in values["added_tokens"] if not item["content"].startswith("<0x")]
    return json.dumps(values)


class PieceTokenizer:
    """A tokenizer of given pieces; `decode` joins them. Lets tests choose what a token covers."""

    bos_token_id = None
    eos_token_id = None

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = list(pieces)

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        return "".join(self.pieces[i] for i in ids)
