"""vLLM's `structured_outputs`: JSON, one of several texts, or what a regular expression or a grammar describes."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import Field, model_validator

from ewe.server.schemas.common import FullText, RequestModel

Choices = Annotated[list[FullText], Field(min_length=1, max_length=1024)]

_KINDS = ("json_", "json_object", "choice", "regex", "grammar")


class StructuredOutputs(RequestModel):
    """What an answer must be; one of them. grammar: in llguidance's form of Lark."""

    json_: dict[str, Any] | None = Field(None, alias="json")
    json_object: bool | None = None
    choice: Choices | None = None
    regex: FullText | None = None
    grammar: FullText | None = None

    @model_validator(mode="after")
    def _is_one(self) -> StructuredOutputs:
        if sum(getattr(self, kind) not in (None, False) for kind in _KINDS) != 1:
            raise ValueError("one of json, json_object, choice, regex and grammar must be given")
        return self

    @property
    def json_schema(self) -> dict[str, Any] | None:
        """What JSON must satisfy; None for other texts."""
        return {"type": "object"} if self.json_object else self.json_

    @property
    def lark(self) -> str | None:
        """What other texts must follow; None for JSON."""
        if self.choice is not None:
            return f"start: {' | '.join(json.dumps(text, ensure_ascii=False) for text in self.choice)}"
        if self.regex is not None:
            return f"start: /{_within_slashes(self.regex)}/"
        return self.grammar


def _within_slashes(regex: str) -> str:
    """A regular expression as Lark writes it; it describes the whole text, with or without the marks of its ends."""
    parts: list[str] = re.findall(r"\\.|.", regex.removeprefix("^"), re.DOTALL)  # an escape is one part
    parts = parts[:-1] if parts[-1:] == ["$"] else parts
    return "".join("\\/" if part == "/" else part for part in parts)
