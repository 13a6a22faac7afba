"""Checking a finished text, sentence by sentence, against whatever a verifier knows."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ewe.engine.evidence import workers
from ewe.engine.request import check_closed_world, check_unicode
from ewe.errors import EWEError, InvalidRequestError
from ewe.text.check_result import CODE, CheckedSentence, CheckedText, why_no_claim
from ewe.text.sentences import SentenceSplitter, Span, code_blocks, is_inside
from ewe.types import Sentence, VerificationRequest, VerificationResult
from ewe.types.protocols import Verifier

LONGEST_SENTENCE = 4000
"""Code points; what is longer is no sentence but a table or data, and is not checked."""

MOST_PRECEDING = 6000  # Code points of text before a sentence that a verifier sees: more than any looks back.
_MOST_FAILURES = 2  # Batches in a row; then the verifier is taken for broken.

Progress = Callable[[int, int], None]


def check_text(
    text: str,
    verifier: Verifier,
    prompt: str = "",
    batch_size: int = 32,
    on_progress: Progress | None = None,
    closed_world: bool | None = None,
) -> CheckedText:
    """Every sentence of `text` with its verdict and evidence.

    Code in fences holds no claims. prompt: what the text answers; a pronoun may stand for a name in it. batch_size:
    sentences per call of the verifier. on_progress: called with (sentences done, all sentences) after each call.
    closed_world: whether what the datastore does not bear is refuted as unsupported; None: as the verifier was made. A
    verifier that raises costs the sentences of that call their verdict, `error` holds the first reason, and after two
    failed calls in a row the rest is not tried. Raises InvalidRequestError for a text without any words, or that is no
    Unicode.
    """
    _refuse_odd(text, prompt)
    check_closed_world(closed_world)
    spans = SentenceSplitter().split(text)
    unasked = why_unasked(text, spans)
    patient = _PatientVerifier(verifier)
    sentences: list[CheckedSentence] = []
    for first in range(0, len(spans), batch_size):
        batch = range(first, min(first + batch_size, len(spans)))
        sentences += _check(text, prompt, spans, batch, unasked, patient, closed_world)
        if on_progress is not None:
            on_progress(len(sentences), len(spans))
    return CheckedText(text, tuple(sentences), prompt, patient.error)


def _refuse_odd(text: str, prompt: str) -> None:
    check_unicode("the text", text)
    check_unicode("the prompt", prompt)
    if not text.strip():
        raise InvalidRequestError("the text to check is empty")


class _PatientVerifier:
    """A verifier whose failures become reasons, until it has failed too often to be tried again."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._failures = 0
        self.error = ""

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult] | str:
        """One result per request, or the reason why there are none."""
        if self._failures >= _MOST_FAILURES:
            return f"not tried after earlier failures: {self.error}"
        try:
            [results] = workers.verify(self._verifier, [requests])
        except Exception as error:  # A verifier may be anybody's code: whatever it raises is the reason.
            self._failures += 1
            reason = str(error) if isinstance(error, EWEError) else f"{type(error).__name__}: {error}"
            self.error = self.error or reason
            return reason
        self._failures = 0
        return results


def why_unasked(text: str, spans: Sequence[Span]) -> dict[int, str]:
    """Why a verifier is not asked about some sentences of a text, by index."""
    code = code_blocks(text)
    long = f"longer than {LONGEST_SENTENCE} characters"
    reasons = {index: long for index, (start, end) in enumerate(spans) if end - start > LONGEST_SENTENCE}
    return reasons | {index: CODE for index, (start, _) in enumerate(spans) if is_inside(start, code)}


def _check(
    text: str,
    prompt: str,
    spans: Sequence[Span],
    batch: range,
    unasked: Mapping[int, str],
    verifier: _PatientVerifier,
    closed_world: bool | None,
) -> Iterator[CheckedSentence]:
    """The sentences of one batch in order; `batch` holds indices of `spans`."""
    pending = [index for index in batch if index not in unasked]
    requests = [
        VerificationRequest(
            prompt,
            _preceding(text, spans, index),
            text[slice(*spans[index])],
            _following(text, spans, index),
            closed_world,
        )
        for index in pending
    ]
    answer = verifier.verify(requests) if requests else []
    results = {} if isinstance(answer, str) else dict(zip(pending, answer, strict=True))
    for index in batch:
        start, end = spans[index]
        sentence = Sentence(text[start:end], start, end)
        if index in results:
            yield _checked(sentence, results[index])
        else:
            yield CheckedSentence(replace(sentence, reason=unasked.get(index, str(answer))))


def _preceding(text: str, spans: Sequence[Span], index: int) -> str:
    """What stands before a sentence, from the start of a sentence on: all of it would make long texts quadratic."""
    start = spans[index][0]
    first = bisect_left(spans, (start - MOST_PRECEDING, 0))
    return text[spans[first][0] : start]


def _following(text: str, spans: Sequence[Span], index: int) -> str:
    """The next sentence; empty behind the last one."""
    start, end = spans[index + 1] if index + 1 < len(spans) else (0, 0)
    return text[start : min(end, start + LONGEST_SENTENCE)]


def _checked(sentence: Sentence, result: VerificationResult) -> CheckedSentence:
    ids = dict.fromkeys(name for claim in result.claims for name in claim.evidence_ids)
    checked = replace(
        sentence,
        verdict=result.verdict,
        score=result.score,
        claims=result.claims,
        source_ids=tuple(ids),
        reason=why_no_claim(result),
    )
    return CheckedSentence(checked, result.evidence, result.notes)
