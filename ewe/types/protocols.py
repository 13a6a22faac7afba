"""What the engine asks of its retriever, verifier and feedback builder, and a verifier of what finds claims."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ewe.errors import EWEError
from ewe.types import (
    Claim,
    Evidence,
    Generation,
    MemoryOptions,
    Passage,
    Query,
    ScoredPassage,
    VerificationRequest,
    VerificationResult,
)
from ewe.types.sampling_params import SamplingParams

MEMORY_EVENTS = (
    *("recalled", "verified", "promoted", "remembered", "reviewed"),
    *("recall_failed", "learning_failed", "request_failed", "review_failed", "not_learnt"),
)
"""What `Memories` count: memories brought, moved, made of answers and of messages, reviewed; failures; answers that
were not learnt from.
"""


@runtime_checkable
class Retriever(Protocol):
    """Finds passages; called from a worker thread with the queries of several sequences at once."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first."""


@runtime_checkable
class Verifier(Protocol):
    """Judges sentences; called from a worker thread with the sentences of several sequences at once."""

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One result per request, in order."""


class ClaimExtractor(Protocol):
    """Finds the checkable statements of sentences; called from a worker thread with many sentences at once."""

    def extract(self, requests: Sequence[VerificationRequest]) -> Sequence[Sequence[Claim] | EWEError]:
        """Per request, in order, the claims of its sentence, none where nothing can be checked, or why it has none.

        `Claim.text` stands alone (pronouns resolved), without a verdict yet; start and end are code points of the
        request's sentence, 0 <= start < end <= len(sentence). `SentenceClaims` may say why there are none. Raises
        EWEError where no sentence could be read.
        """


class Memories(Protocol):
    """What is remembered from earlier requests; whatever fails in it is its own matter, and no request ends of it."""

    def recall(self, queries: Sequence[Query]) -> list[list[ScoredPassage]]:
        """Per query the memories that may be used for it, best first; called from the retrieval's worker thread."""

    @property
    def service(self) -> Any:
        """The store with its rules: an `ewe.longterm.service.MemoryService`."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each of `MEMORY_EVENTS` happened, so far."""

    def warm(self) -> None:
        """Loads the models that the first memory would wait for."""

    def extract_with(self, chat: Callable[[Sequence[Mapping[str, Any]], SamplingParams], str]) -> None:
        """Has facts taken from users' messages by a model; chat: its answer, as `LLM.chat_plainly`."""

    def start(self) -> None:
        """Begins what runs beside the engine, once that runs."""

    def learn(
        self, generation: Generation, evidence: Sequence[Evidence], options: MemoryOptions, question: str = ""
    ) -> None:
        """Takes in what was asked and what the checks of the finished answer found; called from the engine's thread, so
        it only notes it.
        """

    def finish(self) -> None:
        """Ends what runs beside the engine and learns what is left; the engine still runs."""

    def close(self) -> None:
        """Ends what is under way."""


class FeedbackBuilder(Protocol):
    """Turns a verification result into the texts of new verification units."""

    def build(self, result: VerificationResult) -> list[Passage]:
        """Passages for the verification lane, the most useful last (it stays longest)."""
