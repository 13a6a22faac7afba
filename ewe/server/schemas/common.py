"""The parts of requests and answers that several endpoints share."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from ewe.text.json_values import check_json, check_unicode


class RequestModel(BaseModel):
    """Part of a request: values of another type and numbers that are none are refused, unknown fields are noted.

    labels: fields that are known and have no effect here, since they are about the caller's or a provider's books.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    labels: ClassVar[frozenset[str]] = frozenset()
    _unknown: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _note_unknown(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        model = handler(data)
        if isinstance(data, dict):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            model._unknown = tuple(name for name, value in data.items() if name not in known and value is not None)
        return model

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """The fields that were given and are none of this part's; null is as good as left out."""
        return self._unknown


class AnswerModel(BaseModel):
    """Part of an answer; made of the engine's own data where its fields are called alike, or have an alias there."""

    model_config = ConfigDict(frozen=True, from_attributes=True, populate_by_name=True)


def _checked_unicode(text: str) -> str:
    check_unicode(text)
    return text


def _checked_json(value: dict[str, Any]) -> dict[str, Any]:
    check_json(value)
    return value


CHECK_UNICODE = AfterValidator(_checked_unicode)

Text = Annotated[str, CHECK_UNICODE]
"""A string that is Unicode; JSON can spell others, which no tokenizer takes."""

FullText = Annotated[str, Field(min_length=1), CHECK_UNICODE]
"""The same, with at least one character."""

StopText = Annotated[str, Field(min_length=1, max_length=1024), CHECK_UNICODE]
"""A stop string: each is looked for in every step."""

JsonObject = Annotated[dict[str, Any], AfterValidator(_checked_json)]
"""Whatever JSON can say, and a client can be sent back."""

Metadata = Annotated[
    dict[Annotated[Text, Field(max_length=64)], Annotated[Text, Field(max_length=512)]], Field(max_length=16)
]


def only_types(
    known: Collection[str], what: str, advice: str, names: Mapping[str, str] | None = None
) -> BeforeValidator:
    """Refuses parts of a list whose `type` is not known, by their name.

    what: they are; advice: what to do instead; names: what those of some types are called.
    """

    def check(value: Any) -> Any:
        for part in value if isinstance(value, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind not in known:
                name = (names or {}).get(kind, f"{what} of the type {kind!r}")
                raise ValueError(f"not supported yet: {name}; {advice}")
        return value

    return BeforeValidator(check)


def only_empty(message: str) -> BeforeValidator:
    """Refuses with this message a value that asks for something; an empty one asks for nothing."""

    def check(value: Any) -> Any:
        if value:
            raise ValueError(message)
        return value

    return BeforeValidator(check)


def joined(content: Any) -> str:
    """The text of a message: its content, whose parts are joined by line breaks; empty without any."""
    return content if isinstance(content, str) else "\n".join(part.text for part in content or ())


class Document(RequestModel):
    """A text for the memory; veracity in [0, 1]: how far its source can be believed.

    metadata: further fields by name, which come back with the answer's sources.
    """

    text: Text
    title: Text = ""
    id: Text | None = None
    source: Text = ""
    url: Text = ""
    date: Text = ""
    veracity: float = Field(1.0, ge=0, le=1)
    metadata: JsonObject = {}


class StreamOptions(RequestModel):
    """include_usage: whether the stream ends with a chunk of token counts.

    continuous_usage_stats: whether every chunk before it has the counts of then (vLLM's); needs include_usage.
    """

    labels: ClassVar[frozenset[str]] = frozenset({"include_obfuscation"})

    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    continuous_usage_stats: bool | None = None


class EweOptions(RequestModel):
    """What a request may ask of this engine beyond OpenAI's fields.

    events: whether a stream also carries what happens to the text and the memory, as chunks with `choices: []`.
    stream: "final" sends text that stands, "draft" text as it is written, with a `revision` of what is taken back.
    deadline_s: seconds after which the answer ends with what it has. closed_world: whether what the datastore does not
    bear is refuted as unsupported; null: as the server's settings say.
    """

    events: bool = False
    stream: Literal["final", "draft"] = "final"
    deadline_s: float | None = Field(None, gt=0)
    closed_world: bool | None = None


class CompletionTokensDetails(AnswerModel):
    """Tokens that were written and taken back (rejected_prediction_tokens), or came before the answer.

    Both are among `completion_tokens`.
    """

    reasoning_tokens: int = 0
    rejected_prediction_tokens: int = 0


class PromptTokensDetails(AnswerModel):
    """cached_tokens: those of memory units whose keys and values were there already."""

    cached_tokens: int = 0


class Usage(AnswerModel):
    """Token counts of one request, over all of its choices; the prompt counts once, and so do units that were read."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class UrlCitation(AnswerModel):
    """A source of the text between two code points, the end excluded; without an address the url is `ewe:ID`."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(AnswerModel):
    """A citation as OpenAI's schema has it."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class ErrorDetail(AnswerModel):
    """What went wrong; param: the field of the request that it is about; code: for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(AnswerModel):
    """Every error, whatever its status."""

    error: ErrorDetail


def errors_in(form: type[AnswerModel]) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of routes whose errors have this form."""
    return {
        "4XX": {"model": form, "description": "The request cannot be served as it stands."},
        "5XX": {"model": form, "description": "The server cannot serve it, or not now."},
    }


ERROR_RESPONSES = errors_in(ErrorBody)
"""For `responses=` of every route."""

_EVENT = {
    "type": "object",
    "description": "One record; its data is JSON, or [DONE] at the end.",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}

EVENT_STREAM: dict[str, Any] = {
    "content": {"text/event-stream": {"schema": _EVENT}},
    "description": "The answer, or with `stream` its records.",
}
"""For `responses=` of routes that can stream."""
