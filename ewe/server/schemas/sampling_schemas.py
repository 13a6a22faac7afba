"""Fields of requests for an answer: how it is sampled, and what of OpenAI's and vLLM's API is refused."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ewe.server.schemas.common import (
    CHECK_UNICODE,
    Document,
    EweOptions,
    FullText,
    RequestModel,
    StopText,
    StreamOptions,
    Text,
)
from ewe.server.schemas.memory_use import MemoryUse
from ewe.server.schemas.response_format import JsonSchema, ResponseFormat
from ewe.server.schemas.structured_outputs import Choices, StructuredOutputs
from ewe.types.sampling_params import SamplingParams


class RefusedFields(RequestModel):
    """What every request for an answer may only leave out, or set to what holds anyway.

    These fields would change an answer, so one that ignored them would be wrong.
    """

    allowed_token_ids: None = None
    bad_words: None = None
    best_of: Literal[1] | None = None
    include_stop_str_in_output: Literal[False] | None = None
    logits_processors: None = None
    prompt_logprobs: None = None
    skip_special_tokens: Literal[True] | None = None
    truncate_prompt_tokens: None = None
    use_beam_search: Literal[False] | None = None


_Seed = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
_Count = Annotated[int, Field(ge=1, lt=1 << 31)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]

_FORMS = ("response_format", "structured_outputs", "guided_json", "guided_choice", "guided_regex", "guided_grammar")
_DIRECT = (
    *("min_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "n", "stop_token_ids", "ignore_eos"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)  # fmt: skip


class SamplingRequest(RefusedFields):
    """How an answer is written, streamed and remembered; null is the same as leaving a field out.

    documents: texts for the memory. memory: whose long-term memories may be used. cache_salt: requests with different
    salts share no encoded texts. prompt_cache_key: requests with the same one meet in one of several servers.
    format_field: where the form of the answer is asked for.
    """

    labels: ClassVar[frozenset[str]] = frozenset({"metadata", "safety_identifier", "service_tier", "store", "user"})
    format_field: ClassVar[str] = "response_format"

    model: Text | None = None
    max_tokens: _Count | None = None
    min_tokens: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: _Seed | None = None
    n: _Count | None = None
    stop: StopText | Annotated[list[StopText], Field(max_length=16)] | None = None
    stop_token_ids: Annotated[list[int], Field(max_length=64)] | None = None
    ignore_eos: bool | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=100)] | None = None
    logit_bias: dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], Annotated[float, Field(ge=-100, le=100)]] | None = (
        None
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: dict[str, Any] | None = None
    guided_choice: Choices | None = None
    guided_regex: FullText | None = None
    guided_grammar: FullText | None = None
    documents: list[Document | Text] | None = None
    memory: MemoryUse | None = None
    cache_salt: Annotated[str, Field(max_length=256), CHECK_UNICODE] | None = None
    ewe: EweOptions = EweOptions()

    metadata: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    user: str | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether the stream ends with a chunk of token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def wants_usage_so_far(self) -> bool:
        """Whether every chunk of the stream has the token counts of then."""
        return self.wants_usage and bool(self.stream_options and self.stream_options.continuous_usage_stats)

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        asked = [name for name in _FORMS if getattr(self, name) is not None]
        if len(asked) > 1:
            raise ValueError(f"{', '.join(asked)}: an answer has one form; give one of them")
        return self

    @property
    def form_field(self) -> str:
        """The field that asks for the form of the answer."""
        return next((name for name in _FORMS if getattr(self, name) is not None), self.format_field)

    @property
    def json_schema(self) -> JsonSchema | None:
        """What the answer must satisfy; None for free text."""
        if self.response_format is not None:
            return self.response_format.schema_of_answer
        return self._structure.json_schema if self._structure else None

    @property
    def grammar(self) -> str | None:
        """What the answer must follow where that is no schema, in Lark; None for free text."""
        return self._structure.lark if self._structure else None

    @property
    def _structure(self) -> StructuredOutputs | None:
        older = {name.removeprefix("guided_"): getattr(self, name) for name in _FORMS if name.startswith("guided_")}
        given = {name: value for name, value in older.items() if value is not None}
        return StructuredOutputs(**given) if given else self.structured_outputs

    def sampling_params(
        self, max_tokens: int, logprobs: int | None, prompt_logprobs: int | None, deadline_s: float
    ) -> SamplingParams:
        """The engine's parameters; what the request leaves out has the engine's default.

        deadline_s: the server's own, which a request can only shorten. Raises InvalidRequestError for values that
        contradict each other.
        """
        values = {name: getattr(self, name) for name in _DIRECT if getattr(self, name) is not None}
        return SamplingParams(
            max_tokens=max_tokens,
            logprobs=logprobs,
            prompt_logprobs=prompt_logprobs,
            stop=self.stop or (),  # type: ignore[arg-type]  # a list becomes a tuple
            logit_bias={int(token): bias for token, bias in (self.logit_bias or {}).items()},
            deadline_s=min(self.ewe.deadline_s or deadline_s, deadline_s),
            json_schema=self.json_schema,
            grammar=self.grammar,
            **values,
        )
