"""Judges over the weights of the model that writes: their prompts are rows of the engine's own batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ewe.config import Config
from ewe.config.loading import OnLoad
from ewe.engine.request import Request
from ewe.errors import JudgeError
from ewe.types import Generation, MemoryOptions
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ewe.engine.models.loader import LoadedModel
    from ewe.verification.judges.protocol import Judge, Pair

Run = Callable[[list[Request], None], list[Generation]]


class EngineScore:
    """Log-probabilities of tokens after prompts, asked of an engine from any thread but its own.

    run: gives the answers to requests. memory: what these may use. adapter: what computes them; empty: the model alone.
    """

    def __init__(self, run: Run, memory: MemoryOptions | None = None, adapter: str = "") -> None:
        self._run, self._memory, self._adapter = run, memory, adapter

    def __call__(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> list[list[float]]:
        """Per prompt those of the labels. Raises JudgeError for a prompt without an answer, or EngineDeadError."""
        params = SamplingParams(max_tokens=1, logprobs=len(labels))
        more = {"memory": self._memory, "adapter": self._adapter, "is_plain": True, "label_token_ids": tuple(labels)}
        answers = self._run([Request(ids, params, **more) for ids in prompts], None)  # type: ignore[arg-type]
        for answer in answers:
            if not answer.top_logprobs:
                raise JudgeError(f"the engine did not judge: {answer.error or answer.finish_reason}")
        return [[answer.top_logprobs[0][label] for label in labels] for answer in answers]


class SharedJudge(ABC):
    """Judges from any thread but the engine's own, once it is attached to an engine.

    adapters: what the engine loads beside its model, by the name that the judge's requests give.
    """

    name: str
    adapters: Mapping[str, Path] = {}

    def __init__(self, config: Config) -> None:
        self._memory = None if config.longterm.path is None else MemoryOptions(scope="none")
        self._judge: Judge | None = None

    def attach(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> None:
        """run: gives the answers to requests. Raises JudgeError if the model or the adapter cannot judge."""
        self._judge = self._made(run, loaded, on_load)

    @property
    def description(self) -> str:
        """What people are told of it."""
        return self.name

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive; waits for the engine.

        Raises JudgeError or EngineDeadError if the engine is closed meanwhile.
        """
        if self._judge is None:
            raise JudgeError("the judge in the engine's batch was asked before there was an engine")
        return self._judge.judge(pairs)

    @abstractmethod
    def _made(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> Judge | None:
        """The judge that asks this engine; None if it turns out that it cannot judge."""
