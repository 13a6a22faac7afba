"""One frozen tree of settings: the same names in Python, in YAML and as `--set group.key=value`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from ewe.config_files import apply_assignments, explain, load_engine_yaml
from ewe.errors import ConfigError
from ewe.placement import MARK, PROMPT_MARK
from ewe.registry import POLICIES, RETRIEVERS, SCORERS, VERIFIERS
from ewe.vocabulary import AUTO, NONE

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Trigger = Literal["interval", "entropy", "min_prob"]
FeedbackForm = Literal["refuting", "supporting", "instruction"]
_DATE = r"^(\d{4}(-\d{2}(-\d{2})?)?)?$"


_YAML_OFF = BeforeValidator(lambda value: "off" if value is False else value)  # YAML reads a bare `off` as false
_Name = Annotated[str | None, AfterValidator(lambda value: None if value == NONE else value)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelConfig(_Settings):
    """Which model, and how it is loaded and run; max_model_len in tokens (None: its own); weights: 8 bits if asked.

    tensor_parallel: how many processes hold a part of every layer each, by transformers' plan for the model.
    adapter: a folder with a LoRA adapter that is merged into the weights, or the name of one that this package has for
    the model. adapters: more of them by name, which are kept apart, for the requests that name one.
    fused: whether layers of a known structure run in few kernels; on GPUs only, and not where they are compiled.
    """

    name: str = "builtin"
    revision: str | None = None
    adapter: _Name = None
    adapters: dict[str, str] | None = None
    dtype: Dtype = "auto"
    weights: Literal["auto", "int8", "fp8"] = "auto"
    device: str = "auto"
    load_format: Literal["auto", "dummy"] = "auto"
    max_model_len: int | None = Field(None, gt=0)
    compile: bool = False
    fused: Annotated[Literal["auto", "off"], _YAML_OFF] = "auto"
    tensor_parallel: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _parts_are_of_a_checkpoint(self) -> Self:
        asked = {
            "model.adapter (merge it into a checkpoint first)": self.adapter is not None,
            "model.adapters": bool(self.adapters),
            "model.weights": self.weights != AUTO,
            "model.compile": self.compile,
            "load_format dummy": self.load_format == "dummy",
            "a GGUF file": self.name.endswith(".gguf"),
        }
        refused = [name for name, is_set in asked.items() if is_set]
        if self.tensor_parallel > 1 and refused:
            raise ValueError(f"tensor_parallel splits a checkpoint as it is, and cannot with {' or '.join(refused)}")
        if self.compile and self.adapters:
            raise ValueError("adapters by name have no place in compiled layers: set compile to false, or merge one")
        return self


class MemoryConfig(_Settings):
    """The working memory: units per lane, tokens per unit, where they stand and how they merge (design 2.1, 2.5, 2.6).

    placement: "in_prompt" puts units into the user's last turn, and to the mark {memory} of a raw prompt; "bare" before
    all of the prompt; "auto" is in_prompt for chats, where the model's template allows it and the model is not the
    built-in one. frame: what stands around units and the user's words in their turn. merge: "auto" is plain in a
    prompt, else paper. unit_temperature: what the logits of attention to units inside a prompt are divided by.
    refresh: which unit of a full lane makes room: the oldest, or the one whose passage the retriever scored lowest.
    precomputed: a folder made by `ewe index precompute`, whose units are loaded instead of encoded.
    """

    retrieval_units: int = Field(4, ge=0)
    verification_units: int = Field(4, ge=0)
    unit_tokens: int = Field(256, gt=0)
    unit_template: str = "{title}: {text}"
    placement: Literal["auto", "in_prompt", "bare"] = "auto"
    frame: str = "Context: {memory}\n{prompt}"
    merge: Literal["auto", "paper", "plain"] = "auto"
    refresh: Literal["fifo", "lowest_score"] = "fifo"
    unit_temperature: float = Field(1.0, gt=0)
    veracity_weighting: Annotated[Literal["off", "linear", "power"], _YAML_OFF] = "off"
    veracity_power: float = Field(2.0, gt=0)
    precomputed: str | None = None

    @model_validator(mode="after")
    def _template_has_text(self) -> Self:
        if "{text}" not in self.unit_template:
            raise ValueError("unit_template must contain {text}")
        return self

    @field_validator("frame")
    @classmethod
    def _frame_has_both(cls, value: str) -> str:
        marks = MARK, PROMPT_MARK
        if any(value.count(mark) != 1 for mark in marks) or value.index(MARK) > value.index(PROMPT_MARK):
            raise ValueError("frame must contain {memory} once and then {prompt} once: the units come before the words")
        return value

    @property
    def num_units(self) -> int:
        """k, the capacity of both lanes together."""
        return self.retrieval_units + self.verification_units


class FeedbackConfig(_Settings):
    """When the engine pauses and what it does with what it finds (ewe.txt 3.1, appendices B and D).

    Intervals in generated tokens; entropy thresholds in nats; timeout in seconds per pause. closed_world: whether the
    datastore tells everything, so that a claim that nothing in it states is refuted. nest_*: by the paper's letters,
    with the number of passages and the longest span.
    """

    retrieve_every: int = Field(1, gt=0)
    verify_every: int = Field(8, gt=0)
    retrieve_when: Trigger = "interval"
    verify_when: Trigger = "interval"
    retrieve_entropy: float = Field(0.5, ge=0)
    verify_entropy: float = Field(0.5, ge=0)
    retrieve_min_prob: float = Field(0.4, ge=0, le=1)
    verify_min_prob: float = Field(0.4, ge=0, le=1)
    retrieval_top_k: int = Field(4, gt=0)
    retrieval_threshold: float = 0.0
    forms: tuple[FeedbackForm, ...] = ("refuting", "supporting")
    max_attempts: int = Field(3, gt=0)
    on_exhausted: Literal["keep_best", "drop", "flag"] = "keep_best"
    mode: Literal["blocking", "optimistic"] = "blocking"
    closed_world: bool = False
    timeout: float = Field(30.0, gt=0)
    retry_temperature: float = Field(0.7, gt=0)
    flare_min_prob: float = Field(0.8, ge=0, le=1)
    flare_mask_prob: float = Field(0.4, ge=0, le=1)
    nest_passages: int = Field(40, gt=0)
    nest_alpha: float = Field(0.3, ge=0, le=1)
    nest_tau: float = Field(0.1, gt=0)
    nest_delta: float = Field(0.5, ge=0, le=1)
    nest_span: int = Field(64, gt=0)
    nest_gamma: float = Field(5e-4, ge=0)


class FilterConfig(_Settings):
    """Which passages may be found: conditions that all hold, those left empty aside.

    sources: only these; without: not these. since and until: ISO dates, both included; a passage without a date meets
    neither. url_prefix: how its address begins. min_veracity: in [0, 1].
    """

    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    since: str = Field("", pattern=_DATE)
    until: str = Field("", pattern=_DATE)
    url_prefix: str = ""
    min_veracity: float = Field(0.0, ge=0, le=1)


class RetrievalConfig(_Settings):
    """How passages are found in the datastore.

    retriever: "auto" is hybrid (BM25 and dense) if a sentence encoder is installed and the passages have vectors or are
    few, else BM25. encoder, reranker: a hub id or a folder; None: the installed all-MiniLM-L6-v2, and no reranking.
    index, recall: how vectors are searched, and the share of the exact result that an approximate index has to find.
    Prefixes go before texts that are encoded. sources: a table of veracities per source (YAML or CSV); half_life_days:
    the age at which a dated passage counts half; agreement: whether passages found together vouch for each other.
    """

    retriever: Annotated[str, AfterValidator(RETRIEVERS.check)] = "auto"
    encoder: str | None = None
    index: Literal["auto", "flat", "ivf", "hnsw", "pq"] = "auto"
    recall: float = Field(0.95, gt=0, le=1)
    query_prefix: str = ""
    passage_prefix: str = ""
    reranker: str | None = None
    filters: FilterConfig = FilterConfig()
    sources: str | None = None
    half_life_days: float | None = Field(None, gt=0)
    agreement: bool = False


class VerificationConfig(_Settings):
    """How claims are judged, for the verifier "claims" (the value comparison uses evidence_top_k only).

    judge: "builtin", "base", "values", a hub id or folder of a classification model, or "openai:MODEL@URL".
    judge_labels: what that model's labels mean, where they do not say it. extractor: "sentences" (each is a claim), or
    "openai:MODEL@URL" for claims found by a language model. evidence_top_k: passages per claim (None: the verifier's
    own number).
    """

    judge: str = "builtin"
    judge_labels: dict[str, Literal["supported", "refuted", "inconclusive"]] | None = None
    extractor: str = "sentences"
    evidence_top_k: int | None = Field(None, gt=0)


class LongTermConfig(_Settings):
    """Memories that last across requests, beside a datastore or instead of one.

    path: the folder of their store, made if missing (None: none). user, agent: whose they are where a request does not
    say. scorer: how far they are believed; verimem-a and verimem-b: the two texts as printed. threshold: the veracity
    asked for (None: theta(q)). top_k: most per retrieval. promote: whether what a check supported becomes one.
    review_every: seconds between reviews (None: none).
    """

    path: str | None = None
    user: str = ""
    agent: str = ""
    scorer: Annotated[str, AfterValidator(SCORERS.check)] = "default"
    threshold: float | None = Field(None, ge=0, le=1)
    top_k: int = Field(2, gt=0)
    promote: bool = False
    review_every: float | None = Field(None, gt=0)


class PipelineConfig(_Settings):
    """Policies that ask the model several times for one answer.

    passages: how many stand in a prompt. questions: most that cove checks; step_tokens: tokens that their plan, each of
    their answers and a sentence may have. candidates: passages that self-rag-like tries a sentence with; it retrieves
    where the model says yes with more than retrieve_prob. dragin_threshold: the need from which DRAGIN retrieves;
    dragin_words: how many words its query has at most.
    """

    passages: int = Field(10, gt=0)
    questions: int = Field(5, gt=0)
    step_tokens: int = Field(128, gt=0)
    candidates: int = Field(4, gt=0)
    retrieve_prob: float = Field(0.2, ge=0, le=1)
    dragin_threshold: float = Field(1.0, ge=0)
    dragin_words: int = Field(25, gt=0)


class CacheConfig(_Settings):
    """The paged KV pool: block_size in tokens; num_blocks, or memory_gib from which it is computed.

    Without either the pool takes 1 GiB of host memory, or what is left of `gpu_share`, the share of a GPU's memory that
    weights, activations and pool may fill. dtype: "auto" is the model's; "fp8_e4m3" is 8 bits per number.
    unit_cache: whether units that no sequence uses stay in the pool until their blocks are needed. host_gib: host
    memory that may hold precomputed units beside a GPU.
    """

    block_size: int = Field(16, gt=0)
    dtype: Literal["auto", "fp8_e4m3"] = "auto"
    num_blocks: int | None = Field(None, gt=0)
    memory_gib: float | None = Field(None, gt=0)
    unit_cache: bool = True
    host_gib: float = Field(4.0, ge=0)
    gpu_share: float = Field(0.9, gt=0, le=1)


class SchedulerConfig(_Settings):
    """Sequences that run at once, tokens in one forward pass, and whether a GPU replays captured graphs.

    async_scheduling: whether a pass is launched before the tokens of the one before it are read; None: on GPUs.
    """

    max_num_seqs: int = Field(16, gt=0)
    max_num_batched_tokens: int = Field(2048, gt=0)
    cuda_graphs: bool = True
    async_scheduling: bool | None = None


class Config(_Settings):
    """All settings of one engine.

    datastore: None or "none", "builtin", "wikipedia-sample", a folder made by `ewe index build` or a JSONL file.
    verifier: "claims" (any text), "values" (names, numbers and dates compared), "builtin" (the same, for the built-in
    world), "none" or "auto", which is "claims" wherever there are a datastore, a policy that checks and room for what
    is found.
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
    datastore: _Name = None
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
        longest_unit = self.memory.unit_tokens if self.memory.num_units else 0
        if self.scheduler.max_num_batched_tokens < longest_unit + self.scheduler.max_num_seqs:
            # Else the sequences that decode could keep a unit or a prompt out of every pass.
            raise ValueError(
                "scheduler.max_num_batched_tokens must be at least scheduler.max_num_seqs"
                + (" plus memory.unit_tokens" if longest_unit else "")
                + f" ({longest_unit + self.scheduler.max_num_seqs})"
            )
        return self

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
