"""How a tokenizer makes text of token ids, as fast as it can: called for many tokens of every answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

_alone: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()


def texts_alone(tokenizer: Any) -> dict[int, str]:
    """The texts of single tokens of this tokenizer that have been decoded, by id: for all who use it."""
    return {} if tokenizer is None else _alone.setdefault(tokenizer, {})


def is_bytewise(tokenizer: Any) -> bool:
    """Whether tokens are bytes, whatever stands before them, as with GPT-2, Llama 3 and Qwen."""
    from tokenizers.decoders import ByteLevel

    return not _overrides_decoding(tokenizer) and isinstance(tokenizer.backend_tokenizer.decoder, ByteLevel)


def _overrides_decoding(tokenizer: Any) -> bool:
    from transformers import PreTrainedTokenizerFast  # the server knows this module before anything is loaded

    kind = type(tokenizer)
    return any(
        getattr(kind, name, None) is not getattr(PreTrainedTokenizerFast, name) for name in ("decode", "_decode")
    )


def decode_function(tokenizer: Any) -> Callable[[list[int]], str]:
    """What turns ids into text, without the special ones and as it is: called for many tokens of every answer.

    What transformers does around the tokenizer that it wraps takes ten times as long, and changes nothing here.
    """
    if _overrides_decoding(tokenizer):
        return partial(tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return partial(tokenizer.backend_tokenizer.decode, skip_special_tokens=True)
