"""The `ewe` object of an answer: what the engine knows of it, the same in all forms of answers."""

from typing import Any, Literal

from pydantic import Field

from ewe.server.schemas.common import AnswerModel

WIRE_VERSION = 1
"""Counts changes of the `ewe` object that a reader has to know of."""

Verdict = Literal["supported", "refuted", "inconclusive", "not_checked"]


class EweClaim(AnswerModel):
    """A checkable statement of a sentence; source_ids: the sources that decided about it.

    reason: why it is refuted although no source contradicts it.
    """

    text: str
    verdict: Verdict
    score: float
    source_ids: list[str] = Field(validation_alias="evidence_ids")
    reason: str = ""


class EweSentence(AnswerModel):
    """A sentence between two code points of the text of `choice`; reason: why it was not checked.

    attention: the share of attention per source id, where the engine computes it. quotes: the id of the source whose
    sentence it is, word for word; empty if the model wrote it.
    """

    choice: int = 0
    start_index: int = Field(validation_alias="start")
    end_index: int = Field(validation_alias="end")
    verdict: Verdict
    score: float
    source_ids: list[str]
    attempts: int
    claims: list[EweClaim]
    reason: str = ""
    attention: dict[str, float] = Field(default_factory=dict)
    quotes: str = ""


class EweSource(AnswerModel):
    """A text that was in memory or decided a verdict; score: the retriever's, if it was retrieved.

    gives_orders: whether the text speaks to its reader ("ignore all previous instructions").
    """

    id: str
    title: str
    url: str
    source: str
    date: str
    text: str
    score: float | None
    veracity: float
    metadata: dict[str, Any]
    gives_orders: bool


class EweRevision(AnswerModel):
    """A wording that was taken back; sentence: its place among `sentences`, null if the sentence was left out."""

    choice: int = 0
    sentence: int | None
    removed: str
    reason: str


class EweResult(AnswerModel):
    """What the engine knows of an answer.

    support_score: the share of supported claims among all claims, null without claims. finish_reasons: per choice, the
    engine's own (stop, length, timeout). stats: counts over all choices, and times in seconds of the longest.
    """

    version: int = WIRE_VERSION
    support_score: float | None
    sentences: list[EweSentence]
    sources: list[EweSource]
    revisions: list[EweRevision]
    finish_reasons: list[str]
    stats: dict[str, int | float]
