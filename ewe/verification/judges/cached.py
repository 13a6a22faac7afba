"""A judge that asks another one about every pair once, and lets no nonsense through."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ewe.config.lazy import warm
from ewe.config.loading import import_torch
from ewe.errors import EWEError, JudgeError
from ewe.verification.judges.protocol import Judge, Pair, can_judge, checked, window_of


class CachedJudge:
    """Remembers the answers to the last `size` pairs; equal pairs of one call are judged once.

    A judge that raises anything but an EWEError, or answers in another shape, becomes a JudgeError; nothing of such an
    answer is kept. Safe to call from several threads, if the judge is.
    """

    def __init__(self, judge: Judge, size: int = 65536) -> None:
        self._judge = judge
        self._size = size
        self._answers: OrderedDict[Pair, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self.window = window_of(judge)
        self._name = str(getattr(judge, "name", type(judge).__name__))

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive. Raises JudgeError."""
        with self._lock:
            known = {pair: self._answers[pair] for pair in pairs if pair in self._answers}
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        known |= dict(zip(unknown, self._ask(unknown), strict=True))
        self._remember(pairs, known)
        return np.stack([known[pair] for pair in pairs]) if pairs else np.zeros((0, 3), np.float32)

    @property
    def can_judge(self) -> bool:
        """Whether it is worth asking."""
        return can_judge(self._judge)

    def warm(self) -> None:
        """Has the judge load its model, if it has one."""
        warm(self._judge)

    def _ask(self, pairs: list[Pair]) -> NDArray[np.float32]:
        if not pairs:
            return np.zeros((0, 3), np.float32)
        try:
            answer = self._judge.judge(pairs)
        except EWEError:
            raise
        except Exception as error:  # A judge may be anybody's code.
            raise JudgeError(f"judge {self._name} failed: {type(error).__name__}: {error}") from error
        return checked(answer, len(pairs), self._name)

    def _remember(self, pairs: Sequence[Pair], answers: dict[Pair, NDArray[np.float32]]) -> None:
        with self._lock:
            for pair in pairs:
                self._answers[pair] = answers[pair]
                self._answers.move_to_end(pair)
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


def trained_further(folder: Path, name: str, max_tokens: int) -> CachedJudge:
    """The built-in judge trained further, as `load_further` reads it from `folder`. Raises JudgeError."""
    import_torch()
    # Here, so that verifiers with other judges need no torch.
    from ewe.verification.judges.builtin_judge import load_further

    return CachedJudge(load_further(folder / "reader.safetensors", name, max_tokens))
