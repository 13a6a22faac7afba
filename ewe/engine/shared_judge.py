"""Judges over the weights of the model that writes: their prompts are rows of the engine's own batch."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ewe.config import Config, ModelConfig
from ewe.config.setting_names import AUTO, READER, WRITER
from ewe.engine.models.model_files import adapter_folder, model_source
from ewe.engine.request import Request
from ewe.errors import JudgeError
from ewe.types import Generation, MemoryOptions
from ewe.types.sampling_params import SamplingParams
from ewe.verification.judges.checkpoints import (
    base_adapter_path,
    base_model_path,
    named_model,
    read_settings,
    reader_adapter_path,
)
from ewe.verification.judges.writer_calibration import WINDOW, calibration_for, fingerprint_of

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

    def attach(self, run: Run, loaded: LoadedModel) -> None:
        """run: gives the answers to requests. Raises JudgeError if the model or the adapter cannot judge."""
        self._judge = self._made(run, loaded)

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive; waits for the engine.

        Raises JudgeError or EngineDeadError if the engine is closed meanwhile.
        """
        if self._judge is None:
            raise JudgeError("the judge in the engine's batch was asked before there was an engine")
        return self._judge.judge(pairs)

    @abstractmethod
    def _made(self, run: Run, loaded: LoadedModel) -> Judge:
        """The judge that asks this engine."""


class SharedAdapterJudge(SharedJudge):
    """The engine's model under the adapter of a judge, which is switched per row.

    name, folder: of the judge. Raises JudgeError if the folder's settings cannot be read.
    """

    def __init__(self, config: Config, name: str, folder: Path) -> None:
        super().__init__(config)
        self.name = name
        self.adapters = {f"{name} judge": folder}
        self._settings = read_settings(folder)
        self.window, self.thresholds = self._settings.window, self._settings.thresholds

    def _made(self, run: Run, loaded: LoadedModel) -> Judge:
        from ewe.verification.judges.base import CausalJudge

        [adapter] = self.adapters
        settings = replace(self._settings, max_tokens=min(self._settings.max_tokens, loaded.max_model_len - 1))
        # Its own: whether special tokens are split is a state of a tokenizer, which other threads would meet.
        tokenizer = copy.deepcopy(loaded.tokenizer)
        return CausalJudge(EngineScore(run, self._memory, adapter), tokenizer, settings, self.name)


class SharedWriterJudge(SharedJudge):
    """The engine's model as it is, believed as far as was measured. Raises ConfigError where that says no."""

    name = WRITER
    window = WINDOW

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        file = config.verification.judge_calibration
        self._calibration = calibration_for(config.model.name, writer_fingerprint(config.model), file)
        self.thresholds = self._calibration.thresholds

    def _made(self, run: Run, loaded: LoadedModel) -> Judge:
        from ewe.verification.judges.writer import LetterQuestion, WriterJudge

        question = LetterQuestion(loaded.tokenizer, loaded.max_model_len - 1)
        return WriterJudge(EngineScore(run, self._memory), question, self._calibration)


def writer_fingerprint(model: ModelConfig) -> str:
    """What tells this model, as the settings change it, from others. Raises ConfigError if it is not there."""
    return fingerprint_of(str(model_source(model)), adapter_folder(model), model.revision, model.weights)


def shared_judge(config: Config, has_model: bool = False) -> SharedJudge | None:
    """The judge that the settings name, if it is the model that writes, as it is or under the judge's adapter.

    None for an adapter where the judge alone would be faster (on a CPU that multiplies bfloat16, for a model in
    float32), or where the model's files are changed, or has_model: it is in memory already, without the adapter. Raises
    ConfigError for a model that was not measured as its own judge, or cannot be, and JudgeError for an adapter that
    cannot be read.
    """
    judging = config.verification
    if judging.judge == WRITER and judging.judge_model is None:
        return SharedWriterJudge(config)
    if has_model or judging.judge not in ("base", READER) or not _takes_adapters(config.model):
        return None
    if judging.judge == "base":
        folder, needed = base_adapter_path(), str(base_model_path())
    else:
        folder = reader_adapter_path()
        needed = judging.judge_model or named_model(folder)
    place = model_source(config.model).place
    is_same = place == needed or Path(place).resolve() == Path(needed).expanduser().resolve()
    return SharedAdapterJudge(config, judging.judge, folder) if is_same else None


def _takes_adapters(model: ModelConfig) -> bool:
    """Whether the model's weights are its files', all in one place, and rows of judges cost no more than elsewhere."""
    is_whole = (model.adapter, model.weights, model.load_format, model.tensor_parallel) == (None, AUTO, AUTO, 1)
    if not is_whole or model.compile or model.device_map is not None:
        return False
    from ewe.verification.judges.cross_encoder import choose_device, multiplies_bfloat16

    return not (model.dtype in (AUTO, "float32") and multiplies_bfloat16(choose_device(model.device)))
