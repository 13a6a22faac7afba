"""Settings of the engine itself: the model, its working memory, feedback, pipelines, the KV pool and the scheduler."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ewe.config.config_files import Name, Settings
from ewe.config.memory_mark import MARK, PROMPT_MARK
from ewe.config.setting_names import AUTO

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Trigger = Literal["interval", "entropy", "min_prob"]
FeedbackForm = Literal["refuting", "supporting", "instruction"]
MOST_WORDINGS = 64  # each is a sequence of its own, beside all others
_YAML_OFF = BeforeValidator(lambda value: "off" if value is False else value)  # YAML reads a bare `off` as false
_YAML_SWITCH = BeforeValidator(lambda value: {False: "off", True: "on"}[value] if isinstance(value, bool) else value)


class ModelConfig(Settings):
    """Which model, and how it is loaded and run; max_model_len in tokens (None: its own); weights: 8 bits if asked.

    tensor_parallel: how many processes hold a part of every layer each. device_map: "auto" spreads the layers of a
    model that is too large for one GPU over the others, host memory and the disk. adapter: a folder with a LoRA adapter
    that is merged into the weights, or the name of one of this package. adapters: more of them by name, which are kept
    apart, for the requests that name one. fused: whether layers of a known structure run in few kernels; on GPUs only,
    and not where they are compiled. thinking: whether a chat model that can reason before it answers does so; "auto":
    where its chat template leaves no choice.
    """

    name: str = "builtin"
    revision: str | None = None
    adapter: Name = None
    adapters: dict[str, str] | None = None
    dtype: Dtype = "auto"
    weights: Literal["auto", "int8", "fp8"] = "auto"
    device: str = "auto"
    load_format: Literal["auto", "dummy"] = "auto"
    max_model_len: int | None = Field(None, gt=0)
    compile: bool = False
    fused: Annotated[Literal["auto", "off"], _YAML_OFF] = "auto"
    thinking: Annotated[Literal["auto", "on", "off"], _YAML_SWITCH] = "auto"
    tensor_parallel: int = Field(1, ge=1)
    device_map: Literal["auto"] | None = None

    @model_validator(mode="after")
    def _parts_are_of_a_checkpoint(self) -> Self:
        splits = {"tensor_parallel": self.tensor_parallel > 1, "device_map": self.device_map is not None}
        splitting = [name for name, is_set in splits.items() if is_set]
        if len(splitting) > 1:
            raise ValueError("tensor_parallel splits every layer, and device_map moves whole ones: set one of them")
        requested = {
            "model.adapter (merge it into a checkpoint first)": self.adapter is not None,
            "model.adapters": bool(self.adapters),
            "model.weights": self.weights != AUTO,
            "model.compile": self.compile,
            "load_format dummy": self.load_format == "dummy",
            "a GGUF file": self.name.endswith(".gguf"),
        }
        refused = [name for name, is_set in requested.items() if is_set]
        if splitting and refused:
            raise ValueError(f"{splitting[0]} splits a checkpoint as it is, and cannot with {' or '.join(refused)}")
        if self.compile and self.adapters:
            raise ValueError("adapters by name have no place in compiled layers: set compile to false, or merge one")
        return self


class MemoryConfig(Settings):
    """The working memory: units per lane, tokens per unit, where they stand, how they merge (docs/architecture.md, 2).

    placement: "in_prompt" puts units into the user's last turn, and to the mark {memory} of a raw prompt; "bare" before
    all of the prompt; "auto" is in_prompt for chats whose template allows it, but bare for the built-in model. frame:
    what stands around units and the user's words. merge: "auto" is plain in a prompt, else paper. unit_temperature:
    divides the logits on units inside a prompt. refresh: which unit of a full lane makes room: the oldest, or that with
    the lowest retrieval score. precomputed: a folder or URL filled by `ewe index precompute`, whose units are
    loaded. question_passages: where policy ewe has what the question brings: as units, or, `pipeline.passages` of them,
    in the prompt, where all of them are read together; "auto" is the prompt wherever memory stands in it, but units
    for the adapter memory-reader, which was trained on them.
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
    precomputed: Name = None
    question_passages: Literal["auto", "prompt", "units"] = "auto"

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


class FeedbackConfig(Settings):
    """When the engine pauses and what it does with what it finds (Chen et al. 2024, 3.1, appendices B and D).

    Intervals in generated tokens; entropy thresholds in nats; timeout in seconds per pause. closed_world: whether the
    datastore tells everything, so that what it does not bear is unsupported, and refuted; requests may say otherwise.
    rewrite_when: whether only refuted sentences are written again, or all that are not supported, as with the paper's
    verifier, which knows nothing between. wordings: how many are drawn at a rewrite. on_exhausted: what becomes of the
    last attempt. auto: with passages in the prompt all that is not supported is written again in an overview, elsewhere
    only what is refuted; and a quotation stands in its place, or else the best wording. nest_*: by the paper's letters,
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
    rewrite_when: Literal["auto", "refuted", "unsupported"] = "auto"
    max_attempts: int = Field(3, gt=0)
    wordings: int = Field(1, gt=0, le=MOST_WORDINGS)
    on_exhausted: Literal["auto", "keep_best", "drop", "flag", "quote"] = "auto"
    on_repeat: Literal["drop", "keep"] = "drop"
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


class PipelineConfig(Settings):
    """Policies that ask the model several times for one answer.

    passages: how many stand in a prompt. questions: most that cove checks; step_tokens: most of a plan, an answer to a
    question and a sentence. candidates: passages that self-rag-like tries a sentence with; it retrieves where the model
    says yes with more than retrieve_prob. dragin_threshold: the need from which DRAGIN retrieves, with dragin_words.
    """

    passages: int = Field(10, gt=0)
    questions: int = Field(5, gt=0)
    step_tokens: int = Field(128, gt=0)
    candidates: int = Field(4, gt=0)
    retrieve_prob: float = Field(0.2, ge=0, le=1)
    dragin_threshold: float = Field(1.0, ge=0)
    dragin_words: int = Field(25, gt=0)


class CacheConfig(Settings):
    """The paged KV pool: block_size in tokens; num_blocks, or memory_gib from which it is computed.

    Without either the pool takes 1 GiB of host memory, or what is left of `gpu_share`, the share of a GPU's memory that
    weights, activations and pool may fill. unit_cache: whether units that no sequence uses stay in the pool until their
    blocks are needed. host_gib: host memory that may hold precomputed units beside a GPU; disk_gib: disk that may hold
    those that come from a URL.
    """

    block_size: int = Field(16, gt=0)
    dtype: Literal["auto", "fp8_e4m3"] = "auto"
    num_blocks: int | None = Field(None, gt=0)
    memory_gib: float | None = Field(None, gt=0)
    unit_cache: bool = True
    host_gib: float = Field(4.0, ge=0)
    disk_gib: float = Field(16.0, ge=0)
    gpu_share: float = Field(0.9, gt=0, le=1)


_CPU_PLACES, GPU_PLACES = 16, 128


class SchedulerConfig(Settings):
    """Sequences that run at once, tokens in one forward pass, and whether a GPU replays captured graphs.

    max_num_seqs: None: 16, and 128 on a GPU (`Config.on_gpu`), where a step takes nearly as long for one as for many.
    async_scheduling: whether a pass is launched before the tokens of the one before it are read; None: on GPUs.
    """

    max_num_seqs: int | None = Field(None, gt=0)
    max_num_batched_tokens: int = Field(2048, gt=0)
    cuda_graphs: bool = True
    async_scheduling: bool | None = None

    @property
    def places(self) -> int:
        """Sequences that run at once."""
        return self.max_num_seqs or _CPU_PLACES
