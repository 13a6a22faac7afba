"""States, versions and models on the wire."""

from __future__ import annotations

from typing import Literal

from ewe.server.schemas.common import AnswerModel
from ewe.summary import EngineSummary


class State(AnswerModel):
    """The server's state."""

    status: Literal["alive", "ready"]


class Health(State):
    """The server's state and what is on in its engine.

    engine: null while the model is being loaded, and for who has no key of a server that needs one.
    """

    engine: EngineSummary | None


class PageStart(AnswerModel):
    """What the page says before the first question: what could be asked, and what is on."""

    examples: list[str]
    engine: EngineSummary | None


class Version(AnswerModel):
    """The engine's version."""

    version: str
    name: str = "ewe-engine"


class Model(AnswerModel):
    """A model as OpenAI and vLLM list it; created: when the server was started, in unix seconds."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "ewe"
    max_model_len: int


class ModelList(AnswerModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[Model]
