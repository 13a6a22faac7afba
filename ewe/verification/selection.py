"""What a judge reads of a passage: the sentences that speak of the claim, under the passage's title."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ewe.text.english import DETERMINERS, PREPOSITIONS, PRONOUNS, stem, words_of
from ewe.text.prompt_injection import addresses_the_reader, without_control_tokens
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words
from ewe.types import Passage

_CACHED_PASSAGES = 4096
_STOP = PRONOUNS | PREPOSITIONS | DETERMINERS | words_of("and or but nor is are was were be been being has have had")
_NEIGHBOUR = 0.3  # What a word of the claim counts that stands in the sentence before or after only.
_LEAD_IN = re.compile(
    r"(?:he|she|it|they|his|her|hers|its|their|this|that|these|those|there|such|both|the\s+(?:same|former|latter))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Window:
    """What a judge reads of a passage, and the sentence that decides (excerpt).

    text: the sentences that speak of the claim; sentence: the best of them alone; led: the same with the sentence that
    its pronoun needs. All three under the title.
    """

    passage: Passage
    text: str
    excerpt: str
    sentence: str
    led: str


class CleanSentences:
    """The sentences of passages without control tokens, and without those that give orders to their reader."""

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()
        self.of = lru_cache(maxsize=_CACHED_PASSAGES)(self._split)

    def _split(self, text: str) -> tuple[str, ...]:
        sentences = (text[start:end] for start, end in self._splitter.split(text))
        clean = (without_control_tokens(sentence).strip() for sentence in sentences)
        return tuple(sentence for sentence in clean if sentence and not addresses_the_reader(sentence))


class SentenceSelector:
    """Cuts passages down to windows of at most max_characters, whole sentences, in the order of the passage.

    A passage that is short enough is read whole. Of a longer one come the sentences that speak most of the claim, each
    with the one before it if it begins with a pronoun. Control tokens, and sentences that give orders to their reader,
    are left out: they state nothing. The excerpt is the sentence that shares most with the claim; without a title, led
    by the sentence that its pronoun needs.
    """

    def __init__(self, max_characters: int = 500) -> None:
        self._max_characters = max_characters
        self._sentences = CleanSentences()

    def select(self, claim: str, passage: Passage) -> Window:
        """The window of a passage for a claim; empty where the passage states nothing."""
        sentences = self._sentences.of(passage.text)
        if not sentences:
            return Window(passage, "", "", "", "")
        led = [_with_lead(sentences, index) for index in range(len(sentences))]
        scores = shared_words(claim, [f"{passage.title} {text}" for text in led])
        ranked = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))
        best, best_led = sentences[ranked[0]], led[ranked[0]]
        texts = (" ".join(self._chosen(sentences, ranked)), best, best_led)
        whole, sentence, with_lead = (under_title(passage.title, text) for text in texts)
        return Window(passage, whole, best if passage.title else best_led, sentence, with_lead)

    def _chosen(self, sentences: Sequence[str], ranked: Sequence[int]) -> list[str]:
        """The best sentences that fit together; the very best always, cut by the judge if it must be."""
        room = self._max_characters
        chosen: set[int] = set()
        for index in ranked:
            lead = [index - 1] if index > 0 and needs_lead(sentences[index]) else []
            new = {*lead, index} - chosen
            length = sum(len(sentences[number]) + 1 for number in new)
            if chosen and length > room:
                continue
            chosen |= new
            room -= length
        return [sentences[index] for index in sorted(chosen)]


def _with_lead(sentences: Sequence[str], index: int) -> str:
    """The sentence, led by the one before it if it begins with a pronoun."""
    first = index - 1 if index > 0 and needs_lead(sentences[index]) else index
    return " ".join(sentences[first : index + 1])


def needs_lead(sentence: str) -> bool:
    """Whether a sentence begins with a word that the one before it explains."""
    return _LEAD_IN.match(sentence) is not None


def under_title(title: str, text: str) -> str:
    """The text as evidence: "Title: text"; without a title, the text alone."""
    title = " ".join(title.split())
    return f"{title}: {text}" if title else text


def shared_words(claim: str, sentences: Sequence[str]) -> list[float]:
    """Per sentence the summed weights of the claim's stems in it; a stem weighs more the fewer sentences have it.

    Function words weigh nothing. Stems in a neighbouring sentence count a little: a statement may go over two.
    """
    claim_stems = _stems(claim)
    shared_stems = [claim_stems & _stems(sentence) for sentence in sentences]
    spread = Counter(stem for stems in shared_stems for stem in stems)
    weight = {stem: math.log(1.0 + len(sentences) / count) for stem, count in spread.items()}
    scores = []
    for index, own in enumerate(shared_stems):
        near = set().union(*shared_stems[max(0, index - 1) : index + 2]) - own
        scores.append(math.fsum(map(weight.__getitem__, own)) + _NEIGHBOUR * math.fsum(map(weight.__getitem__, near)))
    return scores


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text) if word not in _STOP}
