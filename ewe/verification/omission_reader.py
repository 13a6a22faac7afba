"""Whether a sentence says a claim that leaves out some of its words: "the [fourth] largest", "closed [on Mondays]".

A small model reads both: the built-in judge, trained further (`omission_model/README.md` says how, and how good it is).
It is loaded when it is first needed.
"""

from collections.abc import Sequence
from pathlib import Path

from ewe.config.lazy import Lazy
from ewe.verification.judges.cached import trained_further
from ewe.verification.judges.protocol import SUPPORTED

MODEL = Path(__file__).parent / "omission_model"
MAX_TOKENS = 256
"""Of sentence and claim together; of longer sentences the beginning is read."""
_STILL_SAID = 0.8  # The probability from which on what is left out does not matter.


def still_said(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Per sentence of evidence and claim made of its words: whether the one says the other, with all that is left out.

    Raises JudgeError if the model cannot be read.
    """
    return [said >= _STILL_SAID for said in _reader.get().judge(pairs)[:, SUPPORTED].tolist()] if pairs else []


def load_reader() -> None:
    """Loads the model, if it is not there yet. Raises JudgeError if it cannot be read."""
    _reader.get()


_reader = Lazy(lambda: trained_further(MODEL, "omissions", MAX_TOKENS))
