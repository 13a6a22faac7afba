"""What the checking of claims asks of whatever finds them.

Owns: the protocol. Knows `ewe.types`; no rules, no models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ewe.types import Claim, VerificationRequest


@runtime_checkable
class ClaimExtractor(Protocol):
    """Finds the checkable statements of sentences; called from a worker thread with many sentences at once."""

    def extract(self, requests: Sequence[VerificationRequest]) -> list[list[Claim]]:
        """Per request, in order, the claims of its sentence; an empty list where nothing can be checked.

        `Claim.text` stands alone (pronouns resolved), without a verdict yet; start and end are code points of the
        request's sentence, 0 <= start < end <= len(sentence). Raises EWEError where extraction could not be done.
        """
        ...
