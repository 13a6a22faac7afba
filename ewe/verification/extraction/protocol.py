"""What the checking of claims asks of whatever finds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ewe.errors import EWEError
from ewe.types import Claim, VerificationRequest


class ExtractionError(EWEError):
    """The claims of a sentence could not be extracted.

    claims: what became of each request of the call, its claims or the error that it met; empty where nothing was tried.
    """

    def __init__(self, message: str, claims: Sequence[list[Claim] | EWEError] = ()) -> None:
        super().__init__(message)
        self.claims = tuple(claims)


@runtime_checkable
class ClaimExtractor(Protocol):
    """Finds the checkable statements of sentences; called from a worker thread with many sentences at once."""

    def extract(self, requests: Sequence[VerificationRequest]) -> list[list[Claim]]:
        """Per request, in order, the claims of its sentence; an empty list where nothing can be checked.

        `Claim.text` stands alone (pronouns resolved), without a verdict yet; start and end are code points of the
        request's sentence, 0 <= start < end <= len(sentence). Raises EWEError where extraction could not be done.
        """
        ...


def extract_each(extractor: ClaimExtractor, requests: Sequence[VerificationRequest]) -> list[list[Claim] | EWEError]:
    """Claims or an error per request, in order: one that the extractor fails at does not take the others along."""
    try:
        return list(extractor.extract(requests))
    except ExtractionError as error:
        return list(error.claims) if len(error.claims) == len(requests) else [error] * len(requests)
