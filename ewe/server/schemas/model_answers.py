"""Models on the wire, as OpenAI and vLLM list them, and as Anthropic and Cohere do."""

from datetime import datetime
from typing import Literal

from ewe.server.schemas.common import AnswerModel


class Model(AnswerModel):
    """A model as OpenAI and vLLM list it; created: when the server was started, in unix seconds.

    parent: the model under an adapter, null for the model itself. task: what it does; a model that embeds or reranks
    texts does not say how much it reads.
    """

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "ewe"
    max_model_len: int | None
    parent: str | None = None
    task: Literal["generate", "embed", "rerank"] = "generate"


class ModelList(AnswerModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[Model]


class ModelInfo(AnswerModel):
    """A model as Anthropic lists it; created_at: when the server was started.

    max_input_tokens: tokens of a prompt, its answer and a memory unit together; max_tokens: the most of an answer.
    """

    type: Literal["model"] = "model"
    id: str
    display_name: str
    created_at: datetime
    lifecycle: Literal["active"] = "active"
    max_input_tokens: int
    max_tokens: int


class ModelInfoPage(AnswerModel):
    """All models as Anthropic lists them, on the only page."""

    data: list[ModelInfo]
    has_more: Literal[False] = False
    first_id: str
    last_id: str


class CohereModel(AnswerModel):
    """A model as Cohere lists it; finetuned: whether it is an adapter. tokenizer_url: there is none, so clients ask."""

    name: str
    is_deprecated: Literal[False] = False
    endpoints: list[str]
    finetuned: bool
    context_length: int | None
    tokenizer_url: None = None


class CohereModelList(AnswerModel):
    """All models as Cohere lists them, on the only page."""

    models: list[CohereModel]
    next_page_token: None = None
