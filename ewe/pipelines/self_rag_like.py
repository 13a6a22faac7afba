"""Reflection in the manner of Self-RAG (Asai et al., 2024, section 3.3), for models that have no reflection tokens.

Sentences are written one after the other, the best candidate each time (a beam of one).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Any

from ewe.config import PipelineConfig
from ewe.pipelines.steps import Ask, Decide, Generate, Reply, Retrieve, Step, Steps, Write
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage

RETRIEVE = """Question: {question}

Answer so far: {text}

Does the next sentence of the answer need facts that should be looked up? Reply with yes or no."""

RELEVANT = """Question: {question}

Does the context say something that helps to answer the question? Reply with yes or no."""

SUPPORTED = """Sentence: {sentence}

Does the context support everything that the sentence says? Reply with yes or no."""

USEFUL = """Question: {question}

Answer: {text}{sentence}

Is the last sentence of the answer useful to who asked? Reply with yes or no."""

_WEIGHTS = 1.0, 1.0, 0.5  # of relevance, support and usefulness, as in the paper's experiments
_TOP_LOGPROBS = 50


class SelfRAGLike:
    """Writes sentence by sentence; where the model wants to look something up, one candidate per passage."""

    composes = True

    def __init__(self, settings: PipelineConfig) -> None:
        self._settings = settings
        self._splitter = SentenceSplitter()

    def run(self, question: str) -> Steps:
        """Until a candidate ends the answer, or nothing more is written."""
        text = last = ""
        while True:
            [reply] = yield Generate("retrieve?", (_yes_or_no(RETRIEVE.format(question=question, text=text)),))
            wants = yes_probability(reply)
            yield Decide("retrieve", {"probability": wants, "threshold": self._settings.retrieve_prob})
            passages: tuple[Passage, ...] = ()
            if wants > self._settings.retrieve_prob:
                [passages] = yield Retrieve((f"{question} {last}".strip(),), self._settings.candidates)
            given: list[tuple[Passage, ...]] = [(passage,) for passage in passages] or [()]
            replies = yield Generate(
                "sentence", tuple(Ask(None, own, text, self._settings.step_tokens) for own in given)
            )
            sentences = [self._first_sentence(reply.text) for reply in replies]
            best = 0
            if passages:
                best = yield from self._best(question, text, passages, replies, sentences)
            last, reply = sentences[best], replies[best]
            if last.strip():
                yield Write(last)
                text += last
            if not last.strip() or (reply.finish_reason == "stop" and last.strip() == reply.text.strip()):
                return "stop"

    def _best(
        self, question: str, text: str, passages: Sequence[Passage], replies: Sequence[Reply], sentences: Sequence[str]
    ) -> Generator[Step, Any, int]:
        """Which candidate scores highest by equation 4 of the paper: its own probability plus the weighted answers."""
        asks = []
        for passage, sentence in zip(passages, sentences, strict=True):
            asks += [
                _yes_or_no(RELEVANT.format(question=question), passage),
                _yes_or_no(SUPPORTED.format(sentence=sentence.strip()), passage),
                _yes_or_no(USEFUL.format(question=question, text=text, sentence=sentence)),
            ]
        said = yield Generate("critique", tuple(asks))
        probabilities = [yes_probability(reply) for reply in said]
        scores = []
        for place, reply in enumerate(replies):
            critique = probabilities[3 * place : 3 * place + 3]
            scores.append(reply.mean_prob + sum(w * p for w, p in zip(_WEIGHTS, critique, strict=True)))
        best = max(range(len(scores)), key=scores.__getitem__)
        ids = [passage.id for passage in passages]
        yield Decide("candidate", {"passages": ids, "scores": scores, "critique": probabilities, "chosen": ids[best]})
        return best

    def _first_sentence(self, text: str) -> str:
        """The text up to the end of its first sentence, with the white space before it."""
        spans = self._splitter.split(text)
        return text[: spans[0][1]] if spans else ""


def _yes_or_no(text: str, *passages: Passage) -> Ask:
    return Ask(text, passages, max_tokens=1, top_logprobs=_TOP_LOGPROBS)


def yes_probability(reply: Reply) -> float:
    """P(yes) / (P(yes) + P(no)) at the reply's first token, however they are written; 0.5 if neither is likely."""
    total = {"yes": 0.0, "no": 0.0}
    for token, logprob in reply.top_logprobs[0].items() if reply.top_logprobs else ():
        word = token.strip().lower()
        if word in total:
            total[word] += math.exp(logprob)
    both = sum(total.values())
    return total["yes"] / both if both else 0.5
