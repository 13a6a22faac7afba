"""DRAGIN (Su et al. 2024): look ahead without documents; where information is needed, write one sentence under some."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ewe.config import PipelineConfig
from ewe.engine.effects import Policy
from ewe.policies.plain import plain
from ewe.policies.steps import Ask, Decide, Generate, Reading, Retrieve, Steps, Write
from ewe.text.english import FUNCTION_WORDS
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words

TEXTS = Policy(plain.write, reads_entropy=lambda _: True, captures="queries")
"""The policy of the texts that it asks for."""

_PASSAGES = 3
_WORD = re.compile(r"\S+")


class DRAGIN:
    """Retrieves when the model needs it, by what it attends to and how sure it is."""

    composes = True

    def __init__(self, settings: PipelineConfig) -> None:
        self._settings = settings
        self._splitter = SentenceSplitter()

    def run(self, question: str) -> Steps:
        """Until the text ends, or nothing is added to it."""
        settings, text = self._settings, ""
        while True:
            ask = Ask(begin=text, max_tokens=settings.step_tokens, attention=True)
            [draft] = yield Generate("look-ahead", (ask,))
            reading = draft.reading
            hit = None if reading is None else find_hit(draft.text, reading, settings.dragin_threshold, self._splitter)
            if reading is None or hit is None:
                new = self._whole_sentences(draft.text) if draft.finish_reason == "length" else draft.text
            else:
                query = query_of(draft.text, reading, hit, question, text, settings.dragin_words) or question
                word = draft.text[hit.word.start : hit.word.end]
                data = {"word": word, "value": hit.value, "attention": hit.attention, "entropy": hit.entropy}
                yield Decide("need", {**data, "threshold": settings.dragin_threshold, "query": query})
                [passages] = yield Retrieve((query,), _PASSAGES)
                begin = (text + draft.text[: hit.word.start]).rstrip()
                start = len(text) + hit.sentence
                ask = Ask(None, passages, begin, settings.step_tokens, sentence=begin[start:])
                [reply] = yield Generate("sentence", (ask,))
                new = self._one_sentence(begin + reply.text, start, len(begin))[len(text) :]
            for sentence in self._sentences(new):
                yield Write(sentence)
            text += new
            if not new.strip() or (hit is None and draft.finish_reason == "stop"):
                return "stop"

    def _whole_sentences(self, text: str) -> str:
        """Without the sentence that the limit has cut, unless there is no other."""
        spans = self._splitter.split(text)
        return text[: spans[-2][1]] if len(spans) > 1 else text

    def _one_sentence(self, text: str, start: int, least: int) -> str:
        """The text up to the end of the sentence that begins at `start`; more than `least` characters, if there are."""
        ends = [start + end for _, end in self._splitter.split(text[start:])]
        return text[: next((end for end in ends if end > least), least)]

    def _sentences(self, text: str) -> list[str]:
        """Each sentence with the white space before it."""
        ends = [end for _, end in self._splitter.split(text)]
        return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


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
    asked, prompt_end = reading.prompt.rfind(question.strip()), len(reading.prompt.rstrip())
    spans = [
        (asked, asked + len(question.strip())) if asked >= 0 else (0, prompt_end),
        (prompt_end - len(begin.strip()), prompt_end),
    ]
    in_prompt = [
        word
        for word in tokens_by_word(reading.prompt, reading.prompt_ends)
        if any(start <= word.start and word.end <= end for start, end in spans)
    ]
    in_text = [word for word in tokens_by_word(text, reading.ends) if word.end <= hit.word.start]
    found = [*_weighed(reading.prompt, in_prompt, before), *_weighed(text, in_text, own)]
    best = sorted(range(len(found)), key=lambda place: -found[place][1])[:most]
    return " ".join(found[place][0] for place in sorted(best))


def tokens_by_word(text: str, ends: Sequence[int]) -> list[Word]:
    """The words of a text, by white space, with their tokens; ends: the code point at which each token ends.

    A token belongs to the word that it ends in, and one that is part of a character to the word of the whole one.
    """
    held: list[int] = []
    found: dict[int, list[int]] = {}
    spans = [match.span() for match in _WORD.finditer(text)]
    place = begin = 0
    for token, end in enumerate(ends):
        held.append(token)
        if end == begin:
            continue
        last = begin + len(text[begin:end].rstrip()) - 1
        while place < len(spans) and spans[place][1] <= last:
            place += 1
        if last >= begin and place < len(spans):
            found.setdefault(place, []).extend(held)
        held, begin = [], end
    return [Word(*spans[place], tuple(tokens)) for place, tokens in found.items()]


@lru_cache(maxsize=1 << 14)
def is_content(word: str) -> bool:
    """Whether a word says something of its own: a name, a number, a noun, verb or adjective."""
    return any(part not in FUNCTION_WORDS for part in words(word))


def _weighed(text: str, found: Iterable[Word], weights: npt.NDArray[np.float32]) -> list[tuple[str, float]]:
    """Content words with the sum of their tokens' weights."""
    named = [(text[word.start : word.end], word.tokens) for word in found]
    return [(name, float(weights[list(tokens)].sum())) for name, tokens in named if is_content(name)]
