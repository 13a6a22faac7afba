"""States, versions and models on the wire.

Owns: these JSON shapes.
"""

from __future__ import annotations

from typing import Literal

from ewe.server.wire import AnswerModel


class State(AnswerModel):
    """The server's state."""

    status: Literal["alive", "ready"]


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
