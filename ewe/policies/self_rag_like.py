"""Reflection in the manner of Self-RAG (Asai et al., 2024, section 3.3): by its tokens, or by yes/no questions."""

import math
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ewe.config import PipelineConfig
from ewe.engine.effects import policy
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Add, Ask, Asking, Decide, Generate, HasTokens, Reply, Search
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage

Values = Generator[Generate, Any, list[float]]

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

# What each token of a group counts, as in appendix A.3 of the paper.
_NEED = {"[Retrieval]": 1.0, "[No Retrieval]": 0.0}
_RELEVANCE = {"[Relevant]": 1.0, "[Irrelevant]": 0.0}
_SUPPORT = {"[Fully supported]": 1.0, "[Partially supported]": 0.5, "[No support / Contradictory]": 0.0}
_USE = {"[Utility:1]": -1.0, "[Utility:2]": -0.5, "[Utility:3]": 0.0, "[Utility:4]": 0.5, "[Utility:5]": 1.0}
_OTHERS = ("[Continue to Use Evidence]", "<paragraph>", "</paragraph>")
TOKENS = (*_NEED, *_RELEVANCE, *_SUPPORT, *_USE, *_OTHERS)
"""What a tokenizer has if its model was trained to reflect."""

_ANY_TOKENS = re.compile(rf"\s*(?:{'|'.join(map(re.escape, TOKENS))})+\s*")
_LIKELIEST = 50  # tokens whose probabilities are told; what is not among them counts nothing
_WEIGHTS = 1.0, 1.0, 0.5  # of relevance, support and usefulness, as in the paper's experiments


@policy(asks=True, composes=True)
def self_rag_like(answer: Answer, settings: PipelineConfig) -> Asking:
    """Writes sentence by sentence; where the model wants to look something up, one candidate per passage.

    Until a candidate ends the answer, or nothing more is written.
    """
    question, text, last, splitter = answer.question, "", "", SentenceSplitter()
    model = ReflectionTokens() if (yield HasTokens(TOKENS)) else YesNo()
    while True:
        [wants] = yield from model.need(question, text)
        yield Decide("retrieve", {"probability": wants, "threshold": settings.retrieve_prob})
        passages: tuple[Passage, ...] = ()
        if wants > settings.retrieve_prob:
            [passages] = yield Search((f"{question} {last}".strip(),), settings.candidates)
        given: list[tuple[Passage, ...]] = [(passage,) for passage in passages] or [()]
        asks = tuple(model.candidate(text, own, settings.step_tokens) for own in given)
        replies = yield Generate("sentence", asks)
        written = [model.written(reply, text) for reply in replies]
        sentences = [_first_sentence(words, splitter) for words in written]
        best = 0
        if passages:
            critique = yield from model.critique(question, text, passages, replies, sentences)
            best = yield from _best(passages, replies, critique)
        last = sentences[best]
        if last.strip():
            yield Add(last)
            text += last
        if not last.strip() or (replies[best].finish_reason == "stop" and last.strip() == written[best].strip()):
            return "stop"


def _best(
    passages: Sequence[Passage], replies: Sequence[Reply], critique: Sequence[float]
) -> Generator[Decide, Any, int]:
    """Which candidate scores highest by equation 4 of the paper: its own probability plus the weighted critique."""
    scores = []
    for place, reply in enumerate(replies):
        own = critique[3 * place : 3 * place + 3]
        scores.append(reply.mean_prob + sum(w * value for w, value in zip(_WEIGHTS, own, strict=True)))
    best = max(range(len(scores)), key=scores.__getitem__)
    ids = [passage.id for passage in passages]
    yield Decide("candidate", {"passages": ids, "scores": scores, "critique": critique, "chosen": ids[best]})
    return best


def _first_sentence(text: str, splitter: SentenceSplitter) -> str:
    """The text up to the end of its first sentence, with the white space before it."""
    spans = splitter.split(text)
    return text[: spans[0][1]] if spans else ""


class YesNo:
    """Questions to any model, answered by P(yes) / (P(yes) + P(no)) at the first token; for one answer."""

    def __init__(self) -> None:
        self._relevance: dict[str, float] = {}  # by passage: neither it nor the question changes

    def need(self, question: str, text: str) -> Values:
        """One question."""
        [reply] = yield Generate("retrieve?", (_yes_or_no(RETRIEVE.format(question=question, text=text)),))
        return [yes_probability(reply)]

    def candidate(self, text: str, passages: tuple[Passage, ...], max_tokens: int) -> Ask:
        """With the passage where memory would stand."""
        return Ask(None, passages, text, max_tokens, sentence="", shared="")

    def written(self, reply: Reply, text: str) -> str:
        """All of it."""
        return reply.text

    def critique(
        self, question: str, text: str, given: Sequence[Passage], replies: Sequence[Reply], sentences: Sequence[str]
    ) -> Values:
        """A question for each candidate, each passage that is new, and each wording."""
        new = [passage for passage in given if passage.id not in self._relevance]
        pairs, wordings = list(zip(given, sentences, strict=True)), dict.fromkeys(sentences)
        asks = [_yes_or_no(RELEVANT.format(question=question), passage) for passage in new]
        asks += [_yes_or_no(SUPPORTED.format(sentence=words.strip()), passage) for passage, words in pairs]
        asks += [
            _yes_or_no(USEFUL.format(question=question, text=text, sentence=words), shared=text) for words in wordings
        ]
        probabilities = map(yes_probability, (yield Generate("critique", tuple(asks))))
        self._relevance |= {passage.id: next(probabilities) for passage in new}
        supported, useful = [next(probabilities) for _ in pairs], {words: next(probabilities) for words in wordings}
        rows = zip(pairs, supported, strict=True)
        return [value for (passage, words), own in rows for value in (self._relevance[passage.id], own, useful[words])]


class ReflectionTokens:
    """Tokens among those of the text, by their probabilities within their group."""

    def need(self, question: str, text: str) -> Values:
        """What the model would write next."""
        ask = Ask(begin=text, max_tokens=1, top_logprobs=_LIKELIEST)
        [reply] = yield Generate("retrieve?", (ask,))
        return [_expected(reply.top_logprobs[0], _NEED)]

    def candidate(self, text: str, passages: tuple[Passage, ...], max_tokens: int) -> Ask:
        """With the passage after the text, as in training."""
        frame = "[Retrieval]<paragraph>{passages}</paragraph>" if passages else "[No Retrieval]"
        return Ask(None, passages, text, max_tokens, _LIKELIEST, frame=frame, kept=TOKENS)

    def written(self, reply: Reply, text: str) -> str:
        """Without reflection tokens, which stand where a space would."""
        words = _ANY_TOKENS.sub(" ", reply.text).strip()
        return f" {words}" if words and text else words

    def critique(
        self, question: str, text: str, given: Sequence[Passage], replies: Sequence[Reply], sentences: Sequence[str]
    ) -> Values:
        """What stands in the candidates already: relevance first, the others where they are first written."""
        yield from ()  # asks nothing
        scores = []
        for reply in replies:
            scores.append(_expected(reply.top_logprobs[0], _RELEVANCE))
            scores += [_expected(_first(reply, group), group) for group in (_SUPPORT, _USE)]
        return scores


def _yes_or_no(text: str, *passages: Passage, shared: str = "") -> Ask:
    return Ask(text, passages, max_tokens=1, top_logprobs=_LIKELIEST, shared=shared)


def yes_probability(reply: Reply) -> float:
    """P(yes) / (P(yes) + P(no)) at the reply's first token, however they are written; 0.5 if neither is likely."""
    total = {"yes": 0.0, "no": 0.0}
    for token, logprob in reply.top_logprobs[0].items() if reply.top_logprobs else ():
        word = token.strip().lower()
        if word in total:
            total[word] += math.exp(logprob)
    both = sum(total.values())
    return total["yes"] / both if both else 0.5


def _expected(scores: Mapping[str, float], group: Mapping[str, float]) -> float:
    """What the group's tokens count on average, by their probabilities within the group; 0 without them."""
    own = {name: math.exp(scores[name]) for name in group if name in scores}
    return sum(group[name] * prob for name, prob in own.items()) / sum(own.values()) if own else 0.0


def _first(reply: Reply, group: Mapping[str, float]) -> Mapping[str, float]:
    """The likeliest tokens where the first of the group has been written; none without one."""
    places = zip(reply.tokens, reply.top_logprobs, strict=True)
    return next((scores for token, scores in places if token in group), {})
