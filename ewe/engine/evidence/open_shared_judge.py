"""From the settings to the judge over the writer's weights, if there is one."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ewe.config import Config, ModelConfig
from ewe.config.loading import OnLoad
from ewe.config.setting_names import AUTO, READER, WRITER
from ewe.engine.evidence.shared_judge import EngineScore, Run, SharedJudge
from ewe.engine.evidence.writer_judge import AutoWriterJudge, SharedWriterJudge
from ewe.engine.models.model_files import model_source
from ewe.verification.judges.checkpoints import (
    base_adapter_path,
    base_model_path,
    named_model,
    read_settings,
    reader_adapter_path,
)

if TYPE_CHECKING:
    from ewe.engine.models.loader import LoadedModel
    from ewe.verification.judges.protocol import Judge


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

    def _made(self, run: Run, loaded: LoadedModel, on_load: OnLoad) -> Judge:
        from ewe.verification.judges.base import CausalJudge

        [adapter] = self.adapters
        settings = replace(self._settings, max_tokens=min(self._settings.max_tokens, loaded.max_model_len - 1))
        # Its own: whether special tokens are split is a state of a tokenizer, which other threads would meet.
        tokenizer = copy.deepcopy(loaded.tokenizer)
        return CausalJudge(EngineScore(run, self._memory, adapter), tokenizer, settings, self.name)


def shared_judge(config: Config, has_model: bool = False) -> SharedJudge | None:
    """The judge that the settings name, if it is the model that writes, as it is or under the judge's adapter.

    None for an adapter where the judge alone would be faster (on a CPU that multiplies bfloat16, for a model in
    float32), or where the model's files are changed, or has_model: it is in memory already, without the adapter. Raises
    ConfigError for a model that was not measured as its own judge, or cannot be, and JudgeError for an adapter that
    cannot be read.
    """
    judging = config.verification
    if judging.judge == AUTO:
        return AutoWriterJudge(config)
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
