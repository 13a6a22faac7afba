"""The judge that comes with the package: a small cross-encoder with int8 weights.

Layout of the folder: `config.json` (transformers' configuration with id2label),
`model.safetensors` (see `int8_weights`; the temperature that calibrates the probabilities is in the classifier), the
tokenizer's files (`model_max_length` in tokens per pair) and README.md, the card.
"""

from __future__ import annotations

from pathlib import Path

from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
from transformers.initialization import no_init_weights

from ewe.errors import JudgeError
from ewe.verification.judges.cross_encoder import CrossEncoderJudge, choose_device, multiplies_bfloat16
from ewe.verification.judges.heads import read_head
from ewe.verification.judges.int8_weights import load_int8
from ewe.verification.judges.lazy import builtin_path, check_builtin

_NAME = "builtin"


def load_builtin(device: str = "auto", folder: Path | None = None) -> CrossEncoderJudge:
    """The built-in judge, or one of the same layout in `folder`. Raises JudgeError if it is missing or damaged."""
    folder = folder or builtin_path()
    check_builtin(folder)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        head = read_head(config.id2label, _NAME)
        with no_init_weights():
            model = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
        model.load_state_dict(load_int8(folder / "model.safetensors"))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise JudgeError(f"the built-in judge in {folder} is damaged: {error}") from error
    place = choose_device(device)
    fast = multiplies_bfloat16(place)
    return CrossEncoderJudge(model.to(place), tokenizer, head, _NAME, tokenizer.model_max_length, bfloat16=fast)
