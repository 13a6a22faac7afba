"""Which sentence of the passages answers a question: what may be said in the place of a sentence that does not stand.

A small model reads sentence and question: the built-in judge, trained further (`answer_model/README.md` says how, and
how good it is). It is loaded when it is first needed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ewe.config.lazy import Lazy
from ewe.text.quotation import whole_sentences
from ewe.types import Evidence, Passage, Verdict
from ewe.verification.judges.cached import trained_further
from ewe.verification.judges.protocol import SUPPORTED
from ewe.verification.selection import under_title

MODEL = Path(__file__).parent / "answer_model"
MAX_TOKENS = 160
"""Of sentence and question together; of longer sentences the beginning is read."""
_ANSWERS = 0.5  # The probability from which on a sentence is taken for an answer.
_MOST = 3


def find_answers(questions: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[tuple[Evidence, ...]]:
    """Per question the sentences of its passages that answer it, at most three, the likeliest first; its score is that.

    Raises JudgeError if the model cannot be read.
    """
    told = [list(_sentences(group)) for group in passages]
    pairs = [
        (under_title(passage.title, sentence), question)
        for question, group in zip(questions, told, strict=True)
        for passage, sentence in group
    ]
    scores = iter(_finder.get().judge(pairs)[:, SUPPORTED].tolist() if pairs else ())
    return [_best([(next(scores), *one) for one in group]) for group in told]


def _sentences(passages: Sequence[Passage]) -> Iterator[tuple[Passage, str]]:
    """The sentences that can stand alone, each once."""
    seen: set[str] = set()
    for passage in passages:
        for sentence in whole_sentences(passage.text):
            if sentence not in seen:
                seen.add(sentence)
                yield passage, sentence


def _best(scored: Sequence[tuple[float, Passage, str]]) -> tuple[Evidence, ...]:
    ranked = sorted(scored, key=lambda one: -one[0] * one[1].veracity)[:_MOST]
    return tuple(
        Evidence(passage, Verdict.INCONCLUSIVE, score, sentence)
        for score, passage, sentence in ranked
        if score >= _ANSWERS
    )


_finder = Lazy(lambda: trained_further(MODEL, "answers", MAX_TOKENS))
