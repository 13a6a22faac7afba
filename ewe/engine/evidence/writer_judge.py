"""The model that writes as the judge of its own claims, in the engine's batch: as far as it was measured to be one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from ewe.config import Config, ModelConfig
from ewe.config.loading import LoadStep, OnLoad
from ewe.config.setting_names import BUILTIN_JUDGE, WRITER
from ewe.engine.evidence.shared_judge import EngineScore, Run, SharedJudge
from ewe.engine.models.model_files import adapter_folder, model_source
from ewe.errors import ConfigError, EngineDeadError, JudgeError
from ewe.verification.judges.writer_calibration import (
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
    from ewe.verification.judges.labelled_claims import LabelledClaim
    from ewe.verification.judges.protocol import Judge
    from ewe.verification.judges.writer_measuring import Measured

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
    """The engine's model as far as it can judge: as was measured before, or on a GPU is measured now; else not asked.

    can_judge: whether it is asked at all; known once it is attached.
    """

    name = WRITER
    window, thresholds = WINDOW, THRESHOLDS

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._model, self._file = config.model, config.verification.judge_calibration

    @property
    def can_judge(self) -> bool:
        """Whether it is asked at all."""
        return self._judge is not None

    @property
    def description(self) -> str:
        """Who decides: the built-in judge reads first in any case."""
        return f"{BUILTIN_JUDGE}, then {WRITER}" if self.can_judge else BUILTIN_JUDGE

    def _made(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> Judge | None:
        score = EngineScore(run, self._memory)
        try:
            calibration = self._calibration(score, loaded, on_load)
            return writer_judge(score, loaded, calibration) if calibration and calibration.can_judge else None
        except EngineDeadError:
            raise
        except Exception as error:  # whatever a foreign template raises: nobody has asked for this judge
            level = logging.INFO if isinstance(error, JudgeError) else logging.WARNING
            _log.log(level, "verification.judge auto: the model that writes is not asked to judge: %s", error)
            return None

    def _calibration(self, score: EngineScore, loaded: LoadedModel, on_load: OnLoad) -> Calibration | None:
        """What was measured of the model, or is now; None for one that is not known, where measuring takes long."""
        model = self._model
        if loaded.settings != model or model.load_format == "dummy":
            return None  # not the weights of the files by which a measurement is found again
        fingerprint = writer_fingerprint(model)
        known = self._known(fingerprint)
        if known is not None or not _is_quick(loaded, model):
            return known
        calibration = _measured_now(score, loaded, on_load).calibration(model.name, fingerprint)
        try:
            calibration.write(calibration_path(fingerprint, self._file))
        except OSError as error:
            _log.warning("how well %s judges is measured again at the next start: %s", model.name, error)
        return calibration

    def _known(self, fingerprint: str) -> Calibration | None:
        try:
            return found_calibration(self._model.name, fingerprint, self._file)
        except (ConfigError, OSError) as error:
            if self._file is not None:  # somebody's own, which is not written over
                raise
            _log.warning("verification.judge auto: %s", error)
            return None


def _is_quick(loaded: LoadedModel, model: ModelConfig) -> bool:
    """Whether measuring takes seconds: for weights all of which are on a GPU."""
    return loaded.model.device.type == "cuda" and model.device_map is None


def _measured_now(score: EngineScore, loaded: LoadedModel, on_load: OnLoad) -> Measured:
    from ewe.verification.judges.labelled_claims import read_claims

    claims, numbers = read_claims(), count(1)

    def advance() -> None:
        on_load(LoadStep("measuring how well the model judges", next(numbers), len(claims), "claims"))

    measured = measured_on(claims, score, loaded, advance)
    _log.info("how well the model judges: %s", "; ".join(measured.words()))
    return measured


def measured_on(
    claims: Sequence[LabelledClaim], score: EngineScore, loaded: LoadedModel, advance: Callable[[], object]
) -> Measured:
    """What comes of claims that are put to a model; advance: told of each. Raises JudgeError if it cannot be asked."""
    from ewe.verification.judges.writer import asking
    from ewe.verification.judges.writer_measuring import logits_of, measure

    ask = asking(score, loaded.tokenizer, loaded.max_model_len)
    return measure(logits_of(ask, claims, advance), claims)


def writer_judge(score: EngineScore, loaded: LoadedModel, calibration: Calibration) -> Judge:
    """The judge that asks this model. Raises JudgeError if it cannot be asked."""
    from ewe.verification.judges.writer import WriterJudge, asking

    return WriterJudge(asking(score, loaded.tokenizer, loaded.max_model_len), calibration)


def writer_fingerprint(model: ModelConfig) -> str:
    """What tells this model, as the settings change it, from others. Raises ConfigError if it is not there."""
    return fingerprint_of(str(model_source(model)), adapter_folder(model), model.revision, model.weights)
