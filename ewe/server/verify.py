"""/v1/verify: a text in, its sentences with verdicts and evidence out."""

from contextlib import closing
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from ewe.checked import CheckedSentence, CheckedText
from ewe.checking import check_text
from ewe.errors import InvalidRequestError
from ewe.server.answers import support_score, wire_claim, wire_source
from ewe.server.checks import Checks, TimedVerifier
from ewe.server.ignored import RequestRoute
from ewe.server.schemas.common import (
    ERROR_RESPONSES,
    AnswerModel,
    Document,
    EweClaim,
    EweSource,
    FullText,
    RequestModel,
    Text,
    Verdict,
)
from ewe.server.service import passages_of, service_of
from ewe.server.streaming import Cancellation, run_in_thread

router = APIRouter(tags=["EWE"], route_class=RequestRoute)

_BATCH = 8  # sentences per call of the verifier: a call that has begun cannot be broken off


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


@router.post("/v1/verify", response_model=VerifyResponse, responses=ERROR_RESPONSES)
async def verify(body: VerifyRequest, request: Request) -> VerifyResponse:
    """Checks a text sentence by sentence against the documents given, else against the datastore; writes nothing."""
    checks = service_of(request).served.checks
    return _response(await run_in_thread(request, lambda cancellation: _check(checks, body, cancellation)))


def _check(checks: Checks, body: VerifyRequest, cancellation: Cancellation) -> CheckedText:
    """The checked text; stops between two calls of the verifier when nobody waits any more."""
    if body.documents:
        with closing(checks.against(passages_of(body.documents))) as verifier:
            return _run(verifier, body, cancellation)
    own = checks.own()
    if own is None:
        raise InvalidRequestError("this server has no datastore: give documents to check against")
    return _run(own, body, cancellation)


def _run(verifier: TimedVerifier, body: VerifyRequest, cancellation: Cancellation) -> CheckedText:
    return check_text(body.text, verifier, body.prompt, _BATCH, lambda done, total: cancellation.check())


def _response(checked: CheckedText) -> VerifyResponse:
    return VerifyResponse(
        verdict=checked.verdict.value,
        support_score=support_score(checked.claims),
        sentences=[_sentence(item) for item in checked.sentences],
        sources=[wire_source(passage) for passage in checked.sources.values()],
        error=checked.error,
    )


def _sentence(checked: CheckedSentence) -> VerifySentence:
    sentence = checked.sentence
    evidence = [
        VerifyEvidence(
            source_id=item.passage.id,
            stance=item.stance.value,
            score=float(item.score),
            excerpt=item.excerpt,
            claim=item.claim,
        )
        for item in checked.evidence
    ]
    return VerifySentence(
        start_index=sentence.start,
        end_index=sentence.end,
        text=sentence.text,
        verdict=sentence.verdict.value,
        score=float(sentence.score),
        claims=[wire_claim(claim) for claim in sentence.claims],
        evidence=evidence,
        notes=list(checked.notes),
        reason=sentence.reason,
    )
