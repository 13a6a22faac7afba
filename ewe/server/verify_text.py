"""/v1/verify: a text in, its sentences with verdicts and evidence out."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import AliasPath, Field

from ewe.engine.text_checker import check_text
from ewe.errors import InvalidRequestError
from ewe.server.answering.answers import support_score, wire_source
from ewe.server.engine_client.text_verifiers import TextVerifier, TextVerifiers
from ewe.server.engine_service import service_of
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.request_handling.thread_work import Cancellation, run_in_thread
from ewe.server.schemas import common as schemas
from ewe.server.schemas.ewe_result import EweClaim, EweSource, Verdict
from ewe.server.traffic.admission import check_documents, check_texts
from ewe.server.traffic.orders import passages_of
from ewe.server.traffic.pacing import Turn, turn_of
from ewe.text.check_result import CheckedText
from ewe.types import Passage, VerificationRequest, VerificationResult

router = APIRouter(tags=["EWE"], route_class=RequestRoute)

_MOST_BYTES = 1 << 18  # of a text and what it answers: a hundred pages
_BATCH = 8  # sentences per call of the verifier: a call that has begun cannot be broken off


class VerifyRequest(schemas.RequestModel):
    """A text to check; prompt: what it answers; documents: what to check against instead of the datastore.

    closed_world: whether what is not borne out there is refuted as unsupported; null: for the datastore as the settings
    say, for documents not.
    """

    text: schemas.FullText
    prompt: schemas.Text = ""
    documents: Annotated[list[schemas.Document | schemas.Text], Field(min_length=1, max_length=1000)] | None = None
    closed_world: bool | None = None


class VerifyEvidence(schemas.AnswerModel):
    """A source that speaks for or against a claim; excerpt: the sentence that decides."""

    source_id: str = Field(validation_alias=AliasPath("passage", "id"))
    stance: Verdict
    score: float
    excerpt: str
    claim: str


def _of_sentence(name: str) -> Any:
    return Field(validation_alias=AliasPath("sentence", name))


class VerifySentence(schemas.AnswerModel):
    """A sentence between two code points of the text; reason: why it was not checked."""

    start_index: int = _of_sentence("start")
    end_index: int = _of_sentence("end")
    text: str = _of_sentence("text")
    verdict: Verdict = _of_sentence("verdict")
    score: float = _of_sentence("score")
    claims: list[EweClaim] = _of_sentence("claims")
    evidence: list[VerifyEvidence]
    notes: list[str]
    reason: str = _of_sentence("reason")


class VerifyResponse(schemas.AnswerModel):
    """The whole text; error: what the verifier failed with, empty if it did not."""

    object: Literal["text.verification"] = "text.verification"
    verdict: Verdict
    support_score: float | None
    sentences: list[VerifySentence]
    sources: list[EweSource]
    error: str


@router.post("/v1/verify", response_model=VerifyResponse, responses=schemas.ERROR_RESPONSES)
async def verify(body: VerifyRequest, request: Request) -> VerifyResponse:
    """Checks a text sentence by sentence against the documents given, else against the datastore; writes nothing."""
    check_texts((body.text, body.prompt), _MOST_BYTES, "text")
    documents = passages_of(body.documents)
    check_documents(documents)
    service = service_of(request)
    check = partial(_check, service.served.verifiers, body, documents, turn_of(request.scope))
    return await run_in_thread(request, service.queues.verification, check)


@dataclass(frozen=True, slots=True)
class _InParts:
    """A verifier whose calls are parts of the request's work: one for each sentence while others have answers."""

    verifier: TextVerifier
    turn: Turn

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """What the verifier says."""
        size = self.turn.size_of_parts(_BATCH)
        batches = (requests[first : first + size] for first in range(0, len(requests), size))
        results: list[VerificationResult] = []
        for batch in self.turn.in_parts(batches):  # in a comprehension a failure would hold its part as long as itself
            results += self.verifier.verify(batch)
        return results


def _check(
    verifiers: TextVerifiers, body: VerifyRequest, documents: Sequence[Passage], turn: Turn, cancellation: Cancellation
) -> VerifyResponse:
    """The checked text; stops between two calls of the verifier when nobody waits any more."""
    if documents:
        with closing(verifiers.against(documents, turn.in_parts)) as verifier:
            return _run(_InParts(verifier, turn), body, cancellation)
    own = verifiers.own()
    if own is None:
        raise InvalidRequestError("this server has no datastore: give documents to check against")
    return _run(_InParts(own, turn), body, cancellation)


def _run(verifier: _InParts, body: VerifyRequest, cancellation: Cancellation) -> VerifyResponse:
    def on_progress(done: int, total: int) -> None:
        cancellation.check()

    return _response(check_text(body.text, verifier, body.prompt, _BATCH, on_progress, body.closed_world))


def _response(checked: CheckedText) -> VerifyResponse:
    return VerifyResponse(
        verdict=checked.verdict.value,
        support_score=support_score(checked.claims),
        sentences=list(map(VerifySentence.model_validate, checked.sentences)),
        sources=[wire_source(passage) for passage in checked.sources.values()],
        error=checked.error,
    )
