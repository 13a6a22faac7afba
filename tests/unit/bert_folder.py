"""Small random BERTs in folders, with a tokenizer of the words w0 to w59: encoders and rerankers for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_bert(folder: Path, kind: Any, **options: Any) -> Path:
    """Writes a model of a class of transformers to the folder, and gives the folder. It reads 64 tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, PreTrainedTokenizerFast

    vocabulary = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}
    vocabulary |= {f"w{number}": number + 4 for number in range(60)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]"
    )
    config = BertConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=1.0,
        **options,
    )
    kind(config).eval().save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
