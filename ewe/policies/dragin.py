"""DRAGIN (Su et al. 2024): look ahead without documents; where information is needed, write one sentence under some."""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ewe.config import PipelineConfig
from ewe.engine.effects import policy
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Add, Ask, Asking, Decide, Generate, Reading, Reply, Search
from ewe.text.english import FUNCTION_WORDS
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words
from ewe.types import Passage

Passages = Generator[Decide | Search, Any, tuple[Passage, ...]]
_PASSAGES = 3
_WORD = re.compile(r"\S+")


@policy(asks=True, composes=True, captures="queries", reads_entropy=True)
def dragin(answer: Answer, settings: PipelineConfig) -> Asking:
    """Retrieves when the model needs it, by what it attends to and how sure it is.

    Until the text ends, or nothing is added to it.
    """
    splitter, text = SentenceSplitter(), ""
    while True:
        [draft] = yield Generate("look-ahead", (Ask(begin=text, max_tokens=settings.step_tokens, attention=True),))
        hit = draft.reading and find_hit(draft.text, draft.reading, settings.dragin_threshold, splitter)
        if hit is None:
            new = _whole_sentences(draft.text, splitter) if draft.finish_reason == "length" else draft.text
        else:
            passages = yield from _retrieve(answer.question, text, draft, hit, settings)
            begin = (text + draft.text[: hit.word.start]).rstrip()
            start = len(text) + hit.sentence
            ask = Ask(None, passages, begin, settings.step_tokens, sentence=begin[start:])
            [reply] = yield Generate("sentence", (ask,))
            new = _one_sentence(begin + reply.text, start, len(begin), splitter)[len(text) :]
        ends = [end for _, end in splitter.split(new)]
        for begins, end in zip([0, *ends], ends, strict=False):
            yield Add(new[begins:end])  # with the white space before it
        text += new
        if not new.strip() or (hit is None and draft.finish_reason == "stop"):
            return "stop"


@dataclass(frozen=True, slots=True)
class Word:
    """Code points [start, end) of a text, and the tokens that they are made of."""

    start: int
    end: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """The first word of a text that needs information; sentence: where its sentence starts."""

    word: Word
    sentence: int
    value: float
    attention: float
    entropy: float


def _retrieve(question: str, text: str, draft: Reply, hit: Hit, settings: PipelineConfig) -> Passages:
    """Retrieves with what was attended to where the look-ahead needs information."""
    assert draft.reading is not None
    query = query_of(draft.text, draft.reading, hit, question, text, settings.dragin_words) or question
    data = {"word": draft.text[hit.word.start : hit.word.end], "value": hit.value}
    data |= {"attention": hit.attention, "entropy": hit.entropy, "threshold": settings.dragin_threshold}
    yield Decide("need", {**data, "query": query})
    results: list[tuple[Passage, ...]] = yield Search((query,), _PASSAGES)
    return results[0]


def _whole_sentences(text: str, splitter: SentenceSplitter) -> str:
    """Without the sentence that the limit has cut, unless there is no other."""
    spans = splitter.split(text)
    return text[: spans[-2][1]] if len(spans) > 1 else text


def _one_sentence(text: str, start: int, least: int, splitter: SentenceSplitter) -> str:
    """The text up to the end of the sentence that begins at `start`; more than `least` characters, if there are."""
    ends = [start + end for _, end in splitter.split(text[start:])]
    return text[: next((end for end in ends if end > least), least)]


def find_hit(text: str, reading: Reading, threshold: float, splitter: SentenceSplitter) -> Hit | None:
    """The first content word whose attention x entropy x (words of its sentence) is over the threshold.

    attention: what its tokens received, with that of its sentence's words normalised to 1; entropy: the mean of its
    tokens, in nats. The text's last token, which nothing has read, received nothing.
    """
    received = np.zeros(len(reading.ends))
    received[: len(reading.received)] = reading.received
    every = tokens_by_word(text, reading.ends)
    for start, end in splitter.split(text):
        own = [word for word in every if start <= word.start < end]
        attention = [float(received[list(word.tokens)].sum()) for word in own]
        total = sum(attention)
        for word, share in zip(own, attention, strict=True):
            entropy = sum(reading.entropies[token] for token in word.tokens) / len(word.tokens)
            value = share / total * entropy * len(own) if total else 0.0
            if value > threshold and is_content(text[word.start : word.end]):
                return Hit(word, start, value, share / total, entropy)
    return None


def query_of(text: str, reading: Reading, hit: Hit, question: str, begin: str, most: int) -> str:
    """The content words of question and text that the token before the hit attended to most, in their order.

    begin: what of the text stood in the prompt already, at its end; most: how many words. Chat templates do not count.
    """
    weights = reading.weights[hit.word.tokens[0]]  # of the token before: the first line is the prompt's last token
    before, own = weights[: len(reading.prompt_ends)], weights[len(reading.prompt_ends) :]
    question_at, prompt_end = reading.prompt.rfind(question.strip()), len(reading.prompt.rstrip())
    spans = [
        (question_at, question_at + len(question.strip())) if question_at >= 0 else (0, prompt_end),
        (prompt_end - len(begin.strip()), prompt_end),
    ]
    in_prompt = [
        word
        for word in tokens_by_word(reading.prompt, reading.prompt_ends)
        if any(start <= word.start and word.end <= end for start, end in spans)
    ]
    in_text = [word for word in tokens_by_word(text, reading.ends) if word.end <= hit.word.start]
    weighed = [*_weighed(reading.prompt, in_prompt, before), *_weighed(text, in_text, own)]
    best = sorted(range(len(weighed)), key=lambda place: -weighed[place][1])[:most]
    return " ".join(weighed[place][0] for place in sorted(best))


def tokens_by_word(text: str, ends: Sequence[int]) -> list[Word]:
    """The words of a text, by white space, with their tokens; ends: the code point at which each token ends.

    A token belongs to the word that it ends in, and one that is part of a character to the word of the whole one.
    """
    pending: list[int] = []
    tokens_of: dict[int, list[int]] = {}
    spans = [match.span() for match in _WORD.finditer(text)]
    place = begin = 0
    for token, end in enumerate(ends):
        pending.append(token)
        if end == begin:
            continue
        last = begin + len(text[begin:end].rstrip()) - 1
        while place < len(spans) and spans[place][1] <= last:
            place += 1
        if last >= begin and place < len(spans):
            tokens_of.setdefault(place, []).extend(pending)
        pending, begin = [], end
    return [Word(*spans[place], tuple(tokens)) for place, tokens in tokens_of.items()]


@lru_cache(maxsize=1 << 14)
def is_content(word: str) -> bool:
    """Whether a word says something of its own: a name, a number, a noun, verb or adjective."""
    return any(part not in FUNCTION_WORDS for part in words(word))


def _weighed(text: str, candidates: Iterable[Word], weights: npt.NDArray[np.float32]) -> list[tuple[str, float]]:
    """Content words with the sum of their tokens' weights."""
    spelled = [(text[word.start : word.end], word.tokens) for word in candidates]
    return [(name, float(weights[list(tokens)].sum())) for name, tokens in spelled if is_content(name)]
