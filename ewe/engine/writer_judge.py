"""The model that writes as the judge of its own claims, in the engine's batch: as far as it was measured to be one."""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING

from ewe.config import Config, ModelConfig
from ewe.config.loading import LoadStep, OnLoad
from ewe.config.setting_names import BUILTIN_JUDGE, WRITER
from ewe.engine.models.model_files import adapter_folder, model_source
from ewe.engine.shared_judge import EngineScore, Run, SharedJudge
from ewe.errors import ConfigError, JudgeError
from ewe.verification.judges.writer_calibration import (
    SILENT,
    THRESHOLDS,
    WINDOW,
    Calibration,
    calibration_for,
    calibration_path,
    fingerprint_of,
    found_calibration,
)

if TYPE_CHECKING:
    from ewe.engine.models.loader import LoadedModel
    from ewe.verification.judges.protocol import Judge

_log = logging.getLogger(__name__)


class SharedWriterJudge(SharedJudge):
    """The engine's model as it is, believed as far as was measured. Raises ConfigError where that says no."""

    name = WRITER
    window, thresholds = WINDOW, THRESHOLDS

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        file = config.verification.judge_calibration
        self._calibration = calibration_for(config.model.name, writer_fingerprint(config.model), file)

    def _made(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> Judge:
        return writer_judge(EngineScore(run, self._memory), loaded, self._calibration)


class AutoWriterJudge(SharedJudge):
    """The engine's model as far as it can judge: as was measured before, or on a GPU is measured now; else silent.

    can_judge: whether it is asked at all; known once it is attached.
    """

    name = WRITER
    window, thresholds = WINDOW, THRESHOLDS
    can_judge = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._config = config

    @property
    def description(self) -> str:
        """Who decides: the built-in judge reads first in any case."""
        return f"{BUILTIN_JUDGE}, then {WRITER}" if self.can_judge else BUILTIN_JUDGE

    def _made(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> Judge | None:
        score = EngineScore(run, self._memory)
        calibration = self._calibration(score, loaded, on_load)
        self.can_judge = calibration.can_judge
        return writer_judge(score, loaded, calibration) if self.can_judge else None

    def _calibration(self, score: EngineScore, loaded: LoadedModel, on_load: OnLoad) -> Calibration:
        """What was measured of the model; silence for one that cannot be asked, or only slowly."""
        model = self._config.model
        try:
            fingerprint = writer_fingerprint(model)
            known = found_calibration(model.name, fingerprint, self._config.verification.judge_calibration)
            if known is not None or not _is_quick(loaded, model):
                return known or SILENT
            measured = measured_calibration(score, loaded, model.name, fingerprint, on_load)
        except (ConfigError, JudgeError) as error:
            _log.info("verification.judge auto: the model that writes is not asked to judge: %s", error)
            return SILENT
        try:
            measured.write(calibration_path(fingerprint))
        except OSError as error:
            _log.warning("how well %s judges is measured again at the next start: %s", model.name, error)
        return measured


def _is_quick(loaded: LoadedModel, model: ModelConfig) -> bool:
    """Whether measuring takes seconds: for trained weights, all of them on a GPU."""
    return loaded.model.device.type != "cpu" and model.device_map is None and model.load_format != "dummy"


def writer_judge(score: EngineScore, loaded: LoadedModel, calibration: Calibration) -> Judge:
    """The judge that asks this model. Raises JudgeError if it cannot be asked."""
    from ewe.verification.judges.writer import WriterJudge, asking

    return WriterJudge(asking(score, loaded.tokenizer, loaded.max_model_len), calibration)


def measured_calibration(
    score: EngineScore, loaded: LoadedModel, model: str, fingerprint: str, on_load: OnLoad
) -> Calibration:
    """The claims of the package put to a model, and how far it may be believed then. Raises JudgeError."""
    from ewe.verification.judges.labelled_claims import read_claims
    from ewe.verification.judges.writer import asking
    from ewe.verification.judges.writer_measuring import logits_of, measure

    claims = read_claims()
    ask = asking(score, loaded.tokenizer, loaded.max_model_len)

    numbers = count(1)

    def advance() -> None:
        on_load(LoadStep("measuring how well the model judges", next(numbers), len(claims), "claims"))

    result = measure(logits_of(ask, claims, advance), claims)
    _log.info("how well %s judges: %s", model, "; ".join(result.words()))
    return result.calibration(model, fingerprint)


def writer_fingerprint(model: ModelConfig) -> str:
    """What tells this model, as the settings change it, from others. Raises ConfigError if it is not there."""
    return fingerprint_of(str(model_source(model)), adapter_folder(model), model.revision, model.weights)
