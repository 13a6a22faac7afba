"""Whose long-term memories a request may use."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ewe.server.schemas.common import CHECK_UNICODE, RequestModel

Name = Annotated[str, Field(max_length=256), CHECK_UNICODE]
Share = Annotated[float, Field(ge=0, le=1)]


class MemoryPlace(RequestModel):
    """Whose memory: a user's, an agent's, a user's with one agent; with neither one that everybody shares.

    Unknown fields are refused here on every server: a misspelt `user` would read or delete somebody else's memories.
    """

    model_config = ConfigDict(extra="forbid")

    user: Name = ""
    agent: Name = ""


class MemoryChoice(MemoryPlace):
    """Whose long-term memories a request may use.

    scope: all that they may see, their own, the shared ones, or none. threshold: the veracity to ask for.
    """

    scope: Literal["all", "own", "shared", "none"] = "all"
    threshold: Share | None = None


class MemoryUse(MemoryChoice):
    """The same of a request for text; remember: whether facts of the user's last message become memories."""

    remember: bool = False
