"""DRAGIN (Su et al. 2024): look ahead without documents; where information is needed, write one sentence under some.

When and with which words it retrieves is decided in `information_need`.
"""

from __future__ import annotations

from ewe.config import PipelineConfig
from ewe.pipelines.information_need import find_hit, query_of
from ewe.pipelines.steps import Ask, Decide, Generate, Retrieve, Steps, Write
from ewe.text.sentences import SentenceSplitter

_PASSAGES = 3


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
                [reply] = yield Generate("sentence", (Ask(None, passages, begin, settings.step_tokens),))
                new = self._one_sentence(begin + reply.text, len(text) + hit.sentence, len(begin))[len(text) :]
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
