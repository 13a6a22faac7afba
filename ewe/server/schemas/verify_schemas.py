"""/v1/verify on the wire: a text in, its sentences with verdicts and evidence out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ewe.server.schemas.common import AnswerModel, Document, EweClaim, EweSource, FullText, RequestModel, Text, Verdict


class VerifyRequest(RequestModel):
    """A text to check; prompt: what it answers; documents: what to check against instead of the datastore."""

    text: FullText
    prompt: Text = ""
    documents: Annotated[list[Document | Text], Field(min_length=1, max_length=1000)] | None = None


class VerifyEvidence(AnswerModel):
    """A source that speaks for or against a claim; excerpt: the sentence that decides."""

    source_id: str
    stance: Verdict
    score: float
    excerpt: str
    claim: str


class VerifySentence(AnswerModel):
    """A sentence between two code points of the text; reason: why it was not checked."""

    start_index: int
    end_index: int
    text: str
    verdict: Verdict
    score: float
    claims: list[EweClaim]
    evidence: list[VerifyEvidence]
    notes: list[str]
    reason: str


class VerifyResponse(AnswerModel):
    """The whole text; error: what the verifier failed with, empty if it did not."""

    object: Literal["text.verification"] = "text.verification"
    verdict: Verdict
    support_score: float | None
    sentences: list[VerifySentence]
    sources: list[EweSource]
    error: str
