"""From the name of a judge to the judge.

Imports the module behind a name only when it is asked for, so that naming a judge needs no model library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ewe.config import VerificationConfig
from ewe.config.lazy import Lazy
from ewe.config.loading import import_torch, import_transformers
from ewe.config.registry import JUDGES
from ewe.config.setting_names import AUTO, BUILTIN_JUDGE, READER, WRITER
from ewe.errors import JudgeError
from ewe.verification.endpoint import is_endpoint
from ewe.verification.judges.checkpoints import (
    base_adapter_path,
    base_model_path,
    builtin_path,
    check_adapter,
    check_base,
    check_builtin,
    check_folder,
    is_adapter,
    is_folder,
    read_settings,
    reader_adapter_path,
)
from ewe.verification.judges.writer_calibration import THRESHOLDS, WINDOW, calibration_for, fingerprint_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ewe.verification.combination import Thresholds
    from ewe.verification.judges.protocol import Judge, Pair, ReadingWindow


class LazyJudge:
    """A judge that is loaded when it is first asked, from whatever thread; `judge` raises what loading raises, too."""

    def __init__(
        self,
        load: Callable[[], Judge],
        name: str,
        window: ReadingWindow | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        self._load = load
        self._judge = Lazy(self._loaded)
        self.name = name
        self.window = window
        self.thresholds = thresholds

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Probabilities float32 [pairs, 3]: supported, refuted, inconclusive."""
        return self._judge.get().judge(pairs)

    def warm(self) -> None:
        """Loads the judge."""
        self._judge.get()

    def _loaded(self) -> Judge:
        # The built-in judge needs no transformers, whose import takes longer than all the rest.
        import_torch() if self.name == BUILTIN_JUDGE else import_transformers()
        return self._load()


def load_judge(
    name: str = AUTO,
    *,
    device: str = "auto",
    labels: Mapping[str, str] | None = None,
    model: str | None = None,
    calibration: str | None = None,
) -> Judge:
    """The judge with this name.

    "builtin", or "auto": the cross-encoder that comes with the package. "base": a chat model of `ewe model get`
    with the package's adapter, larger and slower. "reader": the package's adapter for a 0.5B chat model, which
    reads the best passages together (model: as for an adapter's folder). "writer": the chat model in `model`
    itself, as far as `ewe judge calibrate` measured that it can judge (calibration: the file; None: the one in the
    cache folder). Or the name of a plugin's judge. "openai:MODEL@URL": a language model behind an OpenAI-compatible
    endpoint (the key, if it needs one, is read from EWE_API_KEY). Anything else: a folder or hub id of a sequence-
    classification model (NLI, fact checking); labels maps its label names to supported, refuted or inconclusive
    where they do not say so themselves. A folder may also hold an adapter for a chat model (`judges.base`); model:
    the folder or hub id of that model, in place of the one that the adapter names. device: "auto", "cpu" or "cuda",
    for judges that are models. These are loaded when they are first asked, their folders checked at once; a hub id
    is loaded at once, for nothing else tells whether it is there. Raises JudgeError saying what is missing or
    cannot be used, and ConfigError for a writer that was not measured, or cannot judge.
    """
    check_judge(name, device=device, labels=labels)
    name = BUILTIN_JUDGE if name == AUTO else name
    if is_endpoint(name):
        from ewe.verification.judges.llm_judge import open_llm_judge

        return open_llm_judge(name)
    if name == WRITER:
        return _writer(model, calibration, device)
    if name == READER:
        return _adapter_judge(name, reader_adapter_path(), partial(JUDGES.make, name, device=device, model=model))
    if name in JUDGES:
        return LazyJudge(partial(JUDGES.make, name, device=device), name)
    if not is_folder(name):
        return _cross_encoder(name, device, labels)
    folder = Path(name).expanduser()
    if is_adapter(folder):
        return _adapter_judge(name, folder, partial(_adapter, folder, model, device))
    return LazyJudge(partial(_cross_encoder, name, device, labels), name)


def check_judge(name: str, *, device: str = "auto", labels: Mapping[str, str] | None = None) -> None:
    """Raises JudgeError for a judge that `load_judge` could not load, as far as that can be told without loading it."""
    name = BUILTIN_JUDGE if name == AUTO else name
    if not isinstance(name, str) or not name.strip() or JUDGES.is_removed(name):
        raise JudgeError(JUDGES.unknown(name))
    if is_endpoint(name):
        return
    if name == BUILTIN_JUDGE:
        check_builtin(builtin_path())
    elif name == "base":
        check_base(base_adapter_path(), base_model_path())
    elif name == READER:
        check_builtin(builtin_path())  # which reads first
        check_adapter(reader_adapter_path())
    elif name not in JUDGES and is_folder(name):
        folder = Path(name).expanduser()
        check_adapter(folder) if is_adapter(folder) else check_folder(name, labels)
    if device not in ("auto", "cpu"):
        from ewe.verification.judges.cross_encoder import choose_device

        choose_device(device)


def load_configured_judge(settings: VerificationConfig, device: str = "auto") -> Judge:
    """The judge that the settings name; raises as `load_judge`."""
    return load_judge(
        settings.judge,
        device=device,
        labels=settings.judge_labels,
        model=settings.judge_model,
        calibration=settings.judge_calibration,
    )


def _writer(model: str | None, calibration: str | None, device: str) -> Judge:
    if model is None:
        raise JudgeError(f"the judge {WRITER} is the chat model that writes: name it with verification.judge_model")
    measured = calibration_for(model, fingerprint_of(model), calibration)
    load = partial(JUDGES.make, WRITER, model=model, calibration=measured, device=device)
    return LazyJudge(load, WRITER, WINDOW, THRESHOLDS)


def _adapter_judge(name: str, folder: Path, load: Callable[[], Judge]) -> LazyJudge:
    """A judge that says before it is loaded what its folder says of it."""
    settings = read_settings(folder)
    return LazyJudge(load, name, settings.window, settings.thresholds)


def _adapter(folder: Path, model: str | None, device: str) -> Judge:
    from ewe.verification.judges.base import load_adapter_judge

    return load_adapter_judge(folder, model, device)


def _cross_encoder(name: str, device: str, labels: Mapping[str, str] | None) -> Judge:
    from ewe.verification.judges.cross_encoder import CrossEncoderJudge

    return CrossEncoderJudge.load(str(Path(name).expanduser()), device=device, labels=labels)
