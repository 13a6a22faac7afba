"""One frozen tree of settings: the same names in Python, in YAML and as `--set group.key=value`."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ValidationError, model_validator

from ewe.config.config_engine import (
    GPU_PLACES,
    CacheConfig,
    Dtype,
    FeedbackConfig,
    FeedbackForm,
    MemoryConfig,
    ModelConfig,
    PipelineConfig,
    SchedulerConfig,
    Trigger,
)
from ewe.config.config_evidence import FilterConfig, LongTermConfig, RetrievalConfig, VerificationConfig, is_postgres
from ewe.config.config_files import Name, Settings, apply_assignments, explain, load_engine_yaml, load_yaml
from ewe.config.registry import POLICIES, VERIFIERS
from ewe.config.setting_names import AUTO, NONE, WRITER
from ewe.errors import ConfigError

__all__ = [
    "GPU_PLACES",
    "CacheConfig",
    "Config",
    "Dtype",
    "FeedbackConfig",
    "FeedbackForm",
    "FilterConfig",
    "LongTermConfig",
    "MemoryConfig",
    "ModelConfig",
    "PipelineConfig",
    "RetrievalConfig",
    "SchedulerConfig",
    "Trigger",
    "VerificationConfig",
    "is_postgres",
]


class Config(Settings):
    """All settings of one engine.

    datastore: None or "none", "builtin", "wikipedia-sample", a folder made by `ewe index build`, a JSONL file, or the
        address of a store that `ewe index push` filled.
    verifier: "claims" (any text), "builtin" (sentences of the built-in world, read by its grammar), "none" or "auto",
    which is "claims" wherever there are a datastore, a policy that checks and room for what is found.
    """

    model: ModelConfig = ModelConfig()
    memory: MemoryConfig = MemoryConfig()
    feedback: FeedbackConfig = FeedbackConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    verification: VerificationConfig = VerificationConfig()
    longterm: LongTermConfig = LongTermConfig()
    pipeline: PipelineConfig = PipelineConfig()
    cache: CacheConfig = CacheConfig()
    scheduler: SchedulerConfig = SchedulerConfig()
    policy: Annotated[str, AfterValidator(POLICIES.check)] = "ewe"
    datastore: Name = None
    verifier: Annotated[
        str, AfterValidator(VERIFIERS.check), BeforeValidator(lambda value: NONE if value is None else value)
    ] = "auto"
    attribution: bool = False

    @model_validator(mode="after")
    def _groups_agree(self) -> Self:
        if self.verifier not in (AUTO, NONE) and self.policy == "ewe" and self.memory.verification_units == 0:
            raise ValueError(
                "verification needs a place for its feedback: set memory.verification_units to 1 or more, "
                "or verifier to none"
            )
        if self.policy == "nest" and self.memory.precomputed is not None:
            raise ValueError("policy nest: precomputed units hold no hidden states; unset memory.precomputed")
        if self.model.tensor_parallel > 1 and (self.policy == "dragin" or self.scheduler.async_scheduling):
            raise ValueError(
                "model.tensor_parallel: each process sees its own attention heads and needs every token before the "
                "next pass, so policy dragin and scheduler.async_scheduling cannot be had with it"
            )
        longest_unit = self._longest_unit
        if self.scheduler.max_num_batched_tokens < longest_unit + self.scheduler.places:
            # Else the sequences that decode could keep a unit or a prompt out of every pass.
            raise ValueError(
                "scheduler.max_num_batched_tokens must be at least scheduler.max_num_seqs"
                + (" plus memory.unit_tokens" if longest_unit else "")
                + f" ({longest_unit + self.scheduler.places})"
            )
        return self

    @property
    def _longest_unit(self) -> int:
        return self.memory.unit_tokens if self.memory.num_units else 0

    def on_gpu(self) -> Self:
        """These settings, with as many sequences at once as a GPU takes, unless they say how many."""
        if self.scheduler.max_num_seqs is not None:
            return self
        room = self.scheduler.max_num_batched_tokens - self._longest_unit
        scheduler = self.scheduler.model_copy(update={"max_num_seqs": min(GPU_PLACES, room)})
        return self.model_copy(update={"scheduler": scheduler})

    @model_validator(mode="after")
    def _memories_have_their_place(self) -> Self:
        """Memories need room, and their units weigh as much as they are believed, unless the settings say otherwise."""
        if self.longterm.path is None:
            return self
        if self.memory.retrieval_units == 0 or self.feedback.retrieval_threshold >= 1:
            raise ValueError("longterm needs memory.retrieval_units >= 1 and feedback.retrieval_threshold < 1")
        if "veracity_weighting" not in self.memory.model_fields_set:
            object.__setattr__(self, "memory", self.memory.model_copy(update={"veracity_weighting": "linear"}))
        return self

    @model_validator(mode="after")
    def _a_prompt_has_no_weights(self) -> Self:
        if self.memory.question_passages == "prompt" and self.memory.veracity_weighting != "off":
            raise ValueError(
                "memory.question_passages: a prompt knows no weights: set it to units, or memory.veracity_weighting to "
                "off"
            )
        return self

    @property
    def judging(self) -> VerificationConfig:
        """`verification`, in which the judge "writer" names the model that writes if it names none."""
        settings = self.verification
        if settings.judge != WRITER or settings.judge_model is not None:
            return settings
        return settings.model_copy(update={"judge_model": self.model.name})

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Settings from nested mappings; raises ConfigError naming the setting and the nearest known name."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(*(explain(item, cls) for item in error.errors())) from error

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Settings from a YAML file, those of the server left aside; raises ConfigError, for unknown settings too."""
        return cls.from_mapping(load_engine_yaml(path))

    def override(self, assignments: Iterable[str]) -> Self:
        """A copy with `group.key=value` assignments applied; values are parsed as YAML."""
        return self.from_mapping(apply_assignments(self.model_dump(exclude_unset=True), assignments))


def with_named(config: Config, **given: object) -> Config:
    """The settings with what the caller named: datastore, verifier, and longterm, a folder. Raises ConfigError."""
    values = config.model_dump(exclude_unset=True)
    named: dict[str, Any] = {key: str(value) for key, value in given.items() if isinstance(value, str | Path)}
    if "longterm" in named:
        named["longterm"] = {**values.get("longterm", {}), "path": named["longterm"]}
    return Config.from_mapping({**values, **named}) if named else config


def resolve_config(model: str | None, config: Any) -> Config:
    """The settings of an engine: a Config, a YAML file or a mapping, with `model` in place of the model's name.

    The built-in model without settings brings its own. Raises ConfigError.
    """
    if isinstance(config, Config):
        values = config.model_dump(exclude_unset=True)
    elif isinstance(config, str | Path):
        values = load_engine_yaml(config)
    elif config is not None:
        values = dict(config)
    elif model in (None, "builtin"):
        values = load_yaml(Path(str(files("ewe"))) / "evaluation" / "world" / "builtin.yaml")
    else:
        values = {}
    if model is not None:
        group = values.get("model") or {}
        if not isinstance(group, dict):
            raise ConfigError("model must be a group of settings; its name is model.name")
        values["model"] = {**group, "name": model}
    return Config.from_mapping(values)
