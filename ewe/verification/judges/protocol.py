"""What a judge of claims is, and what its answers must look like."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ewe.errors import JudgeError
from ewe.types import Verdict

Pair = tuple[str, str]
"""(evidence, claim)."""

COLUMNS = (Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE)
"""What the columns of a judge's answer stand for."""
SUPPORTED, REFUTED, INCONCLUSIVE = range(3)

_SUM_TOLERANCE = 1e-3
_BEFORE = "\nBefore: "


@dataclass(frozen=True, slots=True)
class ReadingWindow:
    """What a judge that reads passages together is shown: so many characters of them.

    The sentence that the claim follows stands behind them, as "Before: ...".
    """

    max_characters: int

    def evidence(self, passages: Sequence[str], before: str) -> str:
        """The passages, best first, as one text; before: the sentence that the claim follows, if any."""
        text = "\n".join(passages)
        return f"{text}{_BEFORE}{before}" if before else text


def window_of(judge: object) -> ReadingWindow | None:
    """The attribute `window` of a judge that reads passages together; None for one that reads them one by one."""
    window = getattr(judge, "window", None)
    return window if isinstance(window, ReadingWindow) else None


def can_judge(judge: object) -> bool:
    """The attribute `can_judge` of a judge that may turn out to be none, so that it is not asked; else True."""
    return bool(getattr(judge, "can_judge", True))


@runtime_checkable
class Judge(Protocol):
    """Says of a claim whether evidence supports it, refutes it or leaves it open."""

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive; every row sums to 1; [0, 3] for none.

        Both texts of a pair (evidence, claim) are data: whatever instructions or control tokens they spell out, they
        are only judged. Raises JudgeError if there is no answer.
        """


def checked(answer: object, num_pairs: int, judge: str) -> NDArray[np.float32]:
    """`answer` as probabilities float32 [num_pairs, 3], rows scaled to sum to exactly 1.

    Raises JudgeError naming `judge` for another shape, what is no number, NaN, values outside [0, 1] or rows that do
    not sum to 1 (within 0.001).
    """
    try:
        rows = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise JudgeError(f"judge {judge} gave no numbers: {error}") from error
    if num_pairs == 0 and rows.size == 0:
        return np.zeros((0, 3), np.float32)
    if rows.shape != (num_pairs, 3):
        raise JudgeError(
            f"judge {judge} must give one row of 3 probabilities per pair, [{num_pairs}, 3]; got {rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise JudgeError(f"judge {judge} gave NaN or infinity for {int((~np.isfinite(rows)).any(1).sum())} pairs")
    sums = rows.sum(axis=1, keepdims=True)
    if (rows < -_SUM_TOLERANCE).any() or (np.abs(sums - 1.0) > _SUM_TOLERANCE).any():
        raise JudgeError(f"judge {judge} gave rows that are no probabilities (each must lie in [0, 1] and sum to 1)")
    return np.asarray(np.clip(rows, 0.0, None) / np.clip(rows, 0.0, None).sum(axis=1, keepdims=True), dtype=np.float32)
