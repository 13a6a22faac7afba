"""The base judge over the weights of the model that writes: its prompts are rows of the engine's own batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ewe.config import Config
from ewe.engine.model_files import model_source
from ewe.engine.request import Request
from ewe.errors import JudgeError
from ewe.sampling import SamplingParams
from ewe.types import Generation, MemoryOptions
from ewe.verification.judges.checkpoints import base_adapter_path, base_model_path, read_settings
from ewe.vocabulary import AUTO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ewe.engine.loader import LoadedModel
    from ewe.verification.judges.base import CausalJudge
    from ewe.verification.judges.protocol import Pair

_ADAPTER = "base judge"
Run = Callable[[list[Request], None], list[Generation]]


class SharedJudge:
    """Judges from any thread but the engine's own, once it is attached to an engine.

    adapters: what the engine loads beside its model, by the name that the judge's requests give.
    """

    name = "base"

    def __init__(self, config: Config) -> None:
        self.adapters = {_ADAPTER: base_adapter_path()}
        self._memory = None if config.longterm.path is None else MemoryOptions(scope="none")
        self._run: Run
        self._judge: CausalJudge | None = None

    def attach(self, run: Run, loaded: LoadedModel) -> None:
        """run: gives the answers to requests. Raises JudgeError if the adapter is damaged."""
        from ewe.verification.judges.base import CausalJudge

        self._run, settings = run, read_settings(self.adapters[_ADAPTER])
        settings = replace(settings, max_tokens=min(settings.max_tokens, loaded.max_model_len - 1))
        # Its own: whether special tokens are split is a state of a tokenizer, which other threads would meet.
        self._judge = CausalJudge(self._score, copy.deepcopy(loaded.tokenizer), settings)

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive; waits for the engine.

        Raises JudgeError or EngineDeadError if the engine is closed meanwhile.
        """
        if self._judge is None:
            raise JudgeError("the judge in the engine's batch was asked before there was an engine")
        return self._judge.judge(pairs)

    def _score(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> list[list[float]]:
        params = SamplingParams(max_tokens=1, logprobs=len(labels))
        more = {"memory": self._memory, "adapter": _ADAPTER, "is_plain": True, "label_token_ids": tuple(labels)}
        answers = self._run([Request(ids, params, **more) for ids in prompts], None)  # type: ignore[arg-type]
        for answer in answers:
            if not answer.top_logprobs:
                raise JudgeError(f"the engine did not judge: {answer.error or answer.finish_reason}")
        return [[answer.top_logprobs[0][label] for label in labels] for answer in answers]


def shared_judge(config: Config) -> SharedJudge | None:
    """The judge that the settings name, if it is their model under an adapter: the same files, unchanged.

    None where the judge alone would be faster: on a CPU that multiplies bfloat16, for a model in float32.
    """
    model = config.model
    is_whole = (model.adapter, model.weights, model.load_format, model.tensor_parallel) == (None, AUTO, AUTO, 1)
    is_whole = is_whole and not model.compile and model.device_map is None
    if config.verification.judge != "base" or not is_whole:
        return None
    if Path(model_source(model).place).resolve() != base_model_path().resolve():
        return None
    from ewe.verification.judges.cross_encoder import choose_device, multiplies_bfloat16

    is_slower = model.dtype in (AUTO, "float32") and multiplies_bfloat16(choose_device(model.device))
    return None if is_slower else SharedJudge(config)
