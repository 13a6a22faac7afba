"""Which sentences of an answer the texts of its own request bear out, and with what words."""

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ewe.engine.text_checker import MOST_PRECEDING, why_unasked
from ewe.errors import JudgeError
from ewe.server.engine_client.bridge import Run
from ewe.server.engine_client.text_verifiers import InParts, TextVerifier
from ewe.server.engine_service import Service
from ewe.server.request_handling.thread_work import Cancellation
from ewe.server.traffic.fair_queue import LARGE
from ewe.server.traffic.pacing import Turn
from ewe.text.check_result import CheckedSentence
from ewe.text.prefill import in_context
from ewe.text.sentences import Span
from ewe.types import Passage, Sentence, Verdict, VerificationRequest, VerificationResult

_BATCH = 8  # sentences per call of the verifier: a call that has begun cannot be broken off

_log = logging.getLogger("ewe.server")


@dataclass(frozen=True, slots=True)
class Quote:
    """The sentence of a passage that supports one of an answer; id: the passage's."""

    id: str
    text: str


class Citer:
    """Checks one answer against passages of its request, in threads; question: what it answers.

    turn: the request's; checks against much text are parts of its work, as the body that brought it was.

    What looks into the passages is made for the first sentence, and kept until `close`.
    """

    def __init__(self, service: Service, run: Run, turn: Turn, question: str, passages: Iterable[Passage]) -> None:
        self._service, self._tenant, self._question = service, run.tenant, question
        self._prefill = run.opened[0].request.original.prefill
        self._passages = list(passages)
        size = sum(len(passage.text) for passage in self._passages)
        self._turn = turn if size > LARGE else None
        self._verifier: TextVerifier | None = None
        self._is_closed = False
        self._making, self._ending = threading.Lock(), threading.Lock()

    @property
    def is_on(self) -> bool:
        """Whether there is anything to cite."""
        return bool(self._passages)

    async def quotes(self, text: str, spans: Sequence[Span]) -> list[tuple[Quote, ...]]:
        """For each of these sentences of the text what supports it; nothing does where the check fails."""
        if not self.is_on or not spans:
            return [()] * len(spans)
        cancellation = Cancellation()
        work = partial(self._check, text, spans, cancellation)
        try:
            return await self._service.queues.citations.submit(self._tenant, work)
        except JudgeError as error:  # as in the engine, that costs the citations and nothing else
            _log.warning("citations failed", exc_info=error)
            return [()] * len(spans)
        finally:
            cancellation.cancel()

    def close(self) -> None:
        """Ends the checks; nothing is checked any more."""
        with self._ending:
            self._is_closed = True
            if self._verifier is not None:
                self._verifier.close()

    def _opened(self) -> TextVerifier:
        """The verifier of all sentences; raises JudgeError once the answer has ended."""
        with self._making:  # what indexes the passages is made once
            in_parts: InParts = iter if self._turn is None else self._turn.in_parts
            made = self._verifier or self._service.served.verifiers.against(self._passages, in_parts)
            with self._ending:  # not while it is made, which takes long: `close` is called on the event loop
                if self._is_closed:
                    if made is not self._verifier:
                        made.close()
                    raise JudgeError("the answer has ended")
                self._verifier = made
            return made

    def _batches(self, pending: Sequence[Span], cancellation: Cancellation) -> Iterable[Sequence[Span]]:
        """The sentences by calls of the verifier; of checks against much text each is a part of the request's work."""
        if self._turn is None:
            return cancellation.batches(pending, _BATCH)
        return self._turn.in_parts(cancellation.batches(pending, self._turn.size_of_parts(_BATCH)))

    def _check(self, text: str, spans: Sequence[Span], cancellation: Cancellation) -> list[tuple[Quote, ...]]:
        prefill = self._prefill
        moved = [(start + len(prefill), end + len(prefill)) for start, end in spans]
        unasked = why_unasked(prefill + text, moved)  # an answer may go on within a block of code
        pending = [span for index, span in enumerate(spans) if index not in unasked]
        results: list[VerificationResult] = []
        if pending:
            self._opened()  # before the parts of the checks: it has parts of its own
        for batch in self._batches(pending, cancellation):
            results += self._opened().verify([self._request(text, span) for span in batch])
        quotes = dict(zip(pending, map(_quotes, results), strict=True))
        return [quotes.get(span, ()) for span in spans]

    def _request(self, text: str, span: Span) -> VerificationRequest:
        start, end = span
        before, sentence = in_context(self._prefill, text[:start], text[start:end])
        return VerificationRequest(self._question, before[-MOST_PRECEDING:], sentence)


def _quotes(result: VerificationResult) -> tuple[Quote, ...]:
    """One per supporting passage and sentence of it, of all claims that are supported."""
    checked = CheckedSentence(Sentence("", 0, 0), result.evidence)
    quotes = [
        Quote(item.passage.id, item.excerpt or item.passage.text)
        for claim in result.claims
        if claim.verdict is Verdict.SUPPORTED
        for item in checked.evidence_of(claim)
        if item.stance is Verdict.SUPPORTED
    ]
    return tuple(dict.fromkeys(quotes))
