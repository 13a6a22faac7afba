"""Questions about passages, and which sentences answer them: SQuAD 2.0's, XQuAD's, and those written for this.

`written/requests.jsonl` has requests about one side of an article's subject, with all of its sentences that answer
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from ewe.text.quotation import sentences_in
from ewe.text.sentences import SentenceSplitter
from ewe.text.topic import stems_of
from ewe.verification.selection import needs_lead, under_title
from judge_training.claim_corpus import REPORTED, WRITTEN
from judge_training.pairs import Label, Pair, share_of
from judge_training.sources import read_rows, read_xquad

_HELD_OUT = 0.12  # of the articles
_HARD, _APART = 2, 0.4  # wrong sentences with most of the question's words; share of questions beside another article


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a passage, or about an article.

    answers: the numbers of the sentences that answer it, none if none does.
    """

    source: str
    title: str
    sentences: Sequence[str]
    text: str
    answers: Sequence[int]

    def pair(self, number: int, label: Label) -> Pair:
        """A sentence, led by the one that its pronoun needs, beside the question."""
        return Pair(self.shown(number), self.text, label)

    def shown(self, number: int) -> str:
        """A sentence under the title."""
        first = number - 1 if number and needs_lead(self.sentences[number]) else number
        return under_title(self.title, " ".join(self.sentences[first : number + 1]))

    def likeness(self, number: int) -> int:
        """How many of the question's words a sentence has."""
        return len(_stems(self.text) & _stems(self.shown(number)))


def read_questions(data: Path) -> list[Question]:
    """All of them. Raises FileNotFoundError for a set that is missing under `data`."""
    titles = {row["id"]: row for row in read_rows(data / "squad2" / "passages.jsonl")}
    found = []
    for row in read_rows(data / "squad2" / "questions.jsonl"):
        answers = row["answers"] if row["answerable"] else []
        found += _about("squad", titles[row["passage"]], row["question"], answers)
    xquad = list(read_xquad(data))
    for _, title, one in xquad:
        for row in one["qas"]:
            passage = {"title": title, "text": one["context"]}
            found += _about("xquad", passage, row["question"], [answer["text"] for answer in row["answers"]])
    for row in read_rows(WRITTEN / "questions.jsonl"):
        found += [Question("written", row["title"], row["sentences"], *one) for one in row["questions"]]
    articles = [(row["title"], row["text"]) for row in read_rows(data / "wikitext_training" / "passages.jsonl")]
    return [*found, *_requests([*articles, *((title, one["context"]) for _, title, one in xquad)])]


def is_held_out(question: Question) -> bool:
    """Whether it is about an article that is kept apart, or that is reported on."""
    share: float = share_of(question.title, "answers")
    return question.title in REPORTED or share < _HELD_OUT


def trained_on(questions: Sequence[Question]) -> list[Question]:
    """Those about other articles, but no requests: a finder that was trained on them was no better at them."""
    return [one for one in questions if not is_held_out(one) and one.source != "requests"]


def epoch(questions: Sequence[Question], number: int) -> list[Pair]:
    """Per question the sentences that answer it, and some that do not: the likest, any, and one of another article."""
    rng, pairs = Random(f"answers/{number}"), []
    for one in questions:
        pairs += [one.pair(place, Label.SUPPORTED) for place in one.answers]
        others = [place for place in range(len(one.sentences)) if place not in one.answers]
        others.sort(key=lambda place: -one.likeness(place) + rng.random())
        chosen = others[:_HARD] + rng.sample(others[_HARD:], min(1, len(others[_HARD:])))
        pairs += [one.pair(place, Label.INCONCLUSIVE) for place in chosen]
        other = rng.choice(questions)
        if rng.random() < _APART and other.title != one.title:
            place = rng.randrange(len(other.sentences))
            pairs.append(Pair(other.shown(place), one.text, Label.INCONCLUSIVE))
    return pairs


def _requests(paragraphs: Iterable[tuple[str, str]]) -> Iterator[Question]:
    """Requests about articles, whose sentences are numbered from 1; paragraphs: each behind its article's title."""
    articles: dict[str, list[str]] = {}
    for title, text in paragraphs:
        articles.setdefault(title, []).extend(sentences_in(text))
    for row in read_rows(WRITTEN / "requests.jsonl"):
        answers = [number - 1 for number in row["answers"]]
        yield Question("requests", row["title"], articles[row["title"]], row["request"], answers)


def _about(source: str, passage: Mapping[str, str], question: str, answers: Sequence[str]) -> Iterator[Question]:
    """The question with the sentences that hold an answer, of several those with most of its words.

    Nothing where the answer goes over two sentences.
    """
    text = passage["text"]
    sentences = [text[start:end].strip() for start, end in _splitter.split(text)]
    bare = Question(source, passage["title"].replace("_", " "), sentences, question, ())
    holding = [place for place, told in enumerate(sentences) if any(answer in told for answer in answers)]
    if sentences and (holding or not answers):
        most = max(map(bare.likeness, holding), default=0)
        places = [place for place in holding if bare.likeness(place) == most]
        yield Question(source, bare.title, sentences, question, places)


_splitter = SentenceSplitter()
_stems = lru_cache(maxsize=1 << 17)(stems_of)  # A sentence stands beside six questions, and in every epoch.
