"""What form an answer is to have, on the wire: free text, any JSON object, or JSON of a schema."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from ewe.server.schemas.common import AnswerModel, RequestModel, Text

JsonSchema = dict[str, Any]
_ANY_OBJECT: JsonSchema = {"type": "object"}
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_Kind = Literal["text", "json_object", "json_schema"]


class NamedSchema(RequestModel):
    """A schema; it is kept to whatever `strict` says, and its name and description have no effect."""

    model_config = ConfigDict(serialize_by_alias=True)

    name: _Name
    schema_: JsonSchema = Field(alias="schema")
    description: Text | None = None
    strict: bool | None = None


class ResponseFormat(RequestModel):
    """The form of an answer as chat completions have it."""

    type: _Kind
    json_schema: NamedSchema | None = None

    @classmethod
    def of_schema(cls, schema: JsonSchema) -> Self:
        """JSON that satisfies a schema."""
        return cls(type="json_schema", json_schema=NamedSchema(name="answer", schema=schema))

    @model_validator(mode="after")
    def _has_a_schema(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("json_schema goes with the type json_schema, and the type with it")
        return self

    @property
    def schema_of_answer(self) -> JsonSchema | None:
        """What the answer must satisfy; None for free text."""
        if self.json_schema is not None:
            return self.json_schema.schema_
        return _ANY_OBJECT if self.type == "json_object" else None


class TextFormat(RequestModel):
    """The form of an answer as responses have it."""

    model_config = ConfigDict(serialize_by_alias=True)

    type: _Kind = "text"
    name: _Name | None = None
    schema_: JsonSchema | None = Field(None, alias="schema")
    description: Text | None = None
    strict: bool | None = None

    @model_validator(mode="after")
    def _has_a_schema(self) -> Self:
        wants, given = self.type == "json_schema", self.model_fields_set - {"type"}
        if wants and (self.name is None or self.schema_ is None):
            raise ValueError("the type json_schema needs name and schema")
        if not wants and given:
            raise ValueError(f"{', '.join(sorted(given)).replace('schema_', 'schema')}: only with the type json_schema")
        return self

    @property
    def schema_of_answer(self) -> JsonSchema | None:
        """What the answer must satisfy; None for free text."""
        return _ANY_OBJECT if self.type == "json_object" else self.schema_


class TextConfig(RequestModel):
    """How the text of a response is to look."""

    format: TextFormat | None = None


class TextAnswer(AnswerModel):
    """How the text of a response looks; the format is repeated as it was asked for."""

    format: dict[str, Any] = Field(default_factory=lambda: {"type": "text"})
