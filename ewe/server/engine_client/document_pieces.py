"""Documents of a request in pieces: however long they are, what is read for a claim is not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ewe.config.lazy import warm
from ewe.types import Passage, VerificationRequest, VerificationResult
from ewe.types.protocols import Verifier

MOST_CHARACTERS = 4000
"""Of a piece: one or two pages."""

_ENDS = ("\n", ". ", "。", " ")  # where a piece had best end, the best first


class WholeDocuments:
    """A verifier over the pieces of these documents, whose evidence names the whole ones."""

    def __init__(self, verifier: Verifier, documents: Sequence[Passage]) -> None:
        self._verifier = verifier
        self._documents = {document.id: document for document in documents}

    def warm(self) -> None:
        """Has the verifier load what it needs."""
        warm(self._verifier)

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """What the verifier says."""
        return list(map(self._whole, self._verifier.verify(requests)))

    def _whole(self, result: VerificationResult) -> VerificationResult:
        evidence = (replace(one, passage=self._documents.get(one.passage.id, one.passage)) for one in result.evidence)
        return replace(result, evidence=tuple(evidence))


def pieces_of(document: Passage) -> Iterator[Passage]:
    """A document in pieces with its id, title and source: all are of one witness; a short one as it is."""
    text, begin = document.text, 0
    while len(text) - begin > MOST_CHARACTERS:
        end = _end_of_piece(text, begin)
        yield replace(document, text=text[begin:end])
        begin = end
    yield replace(document, text=text[begin:]) if begin else document


def _end_of_piece(text: str, begin: int) -> int:
    """The last good place in the second half of what a piece may have; its limit where there is none."""
    limit = begin + MOST_CHARACTERS
    places = ((text.rfind(end, begin + MOST_CHARACTERS // 2, limit), len(end)) for end in _ENDS)
    return next((place + length for place, length in places if place >= 0), limit)
