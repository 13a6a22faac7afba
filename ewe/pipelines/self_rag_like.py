"""Reflection in the manner of Self-RAG (Asai et al., 2024, section 3.3), by its own tokens where a model has them.

Sentences are written one after the other, the best candidate each time (a beam of one).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ewe.config import PipelineConfig
from ewe.pipelines.reflection import TOKENS, Reflection, ReflectionTokens, YesNo
from ewe.pipelines.steps import Decide, Generate, HasTokens, Reply, Retrieve, Step, Steps, Write
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage

_WEIGHTS = 1.0, 1.0, 0.5  # of relevance, support and usefulness, as in the paper's experiments


class SelfRAGLike:
    """Writes sentence by sentence; where the model wants to look something up, one candidate per passage."""

    composes = True

    def __init__(self, settings: PipelineConfig) -> None:
        self._settings = settings
        self._splitter = SentenceSplitter()

    def run(self, question: str) -> Steps:
        """Until a candidate ends the answer, or nothing more is written."""
        settings, text, last = self._settings, "", ""
        model: Reflection = ReflectionTokens() if (yield HasTokens(TOKENS)) else YesNo()
        while True:
            [wants] = yield from model.need(question, text)
            yield Decide("retrieve", {"probability": wants, "threshold": settings.retrieve_prob})
            passages: tuple[Passage, ...] = ()
            if wants > settings.retrieve_prob:
                [passages] = yield Retrieve((f"{question} {last}".strip(),), settings.candidates)
            given: list[tuple[Passage, ...]] = [(passage,) for passage in passages] or [()]
            asks = tuple(model.candidate(text, own, settings.step_tokens) for own in given)
            replies = yield Generate("sentence", asks)
            written = [model.written(reply, text) for reply in replies]
            sentences = [self._first_sentence(words) for words in written]
            best = 0
            if passages:
                critique = yield from model.critique(question, text, passages, replies, sentences)
                best = yield from self._best(passages, replies, critique)
            last = sentences[best]
            if last.strip():
                yield Write(last)
                text += last
            if not last.strip() or (replies[best].finish_reason == "stop" and last.strip() == written[best].strip()):
                return "stop"

    def _best(
        self, passages: Sequence[Passage], replies: Sequence[Reply], critique: Sequence[float]
    ) -> Generator[Step, Any, int]:
        """Which candidate scores highest by equation 4 of the paper: its own probability plus the weighted critique."""
        scores = []
        for place, reply in enumerate(replies):
            own = critique[3 * place : 3 * place + 3]
            scores.append(reply.mean_prob + sum(w * value for w, value in zip(_WEIGHTS, own, strict=True)))
        best = max(range(len(scores)), key=scores.__getitem__)
        ids = [passage.id for passage in passages]
        yield Decide("candidate", {"passages": ids, "scores": scores, "critique": critique, "chosen": ids[best]})
        return best

    def _first_sentence(self, text: str) -> str:
        """The text up to the end of its first sentence, with the white space before it."""
        spans = self._splitter.split(text)
        return text[: spans[0][1]] if spans else ""
