"""Sentences of passages that may stand in an answer, word for word, in the place of one that is not to stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ewe.text.english import stem, words_of
from ewe.text.overviews import asks_for_all
from ewe.text.prompt_injection import addresses_the_reader
from ewe.text.search_text import subject_of
from ewe.text.sentences import SentenceSplitter
from ewe.text.topic import ABOUT, names_of, share_of, stems_of
from ewe.text.words import words
from ewe.types import Passage

FEWEST_WORDS, MOST_WORDS = 8, 45
_SAID = 0.75  # Share of a sentence's words that one sentence has said, from which on it says nothing new,
_ALL_SAID = 0.9  # and that all of them together have said.
_DECIDES = 0.5  # What it counts that a check was decided by a sentence, beside shares of words.
_BEGINS = 1.5  # What it counts that a sentence says what its subject is, where an answer begins,
_NAMES_FIRST = 0.5  # and that it begins with the whole name of the subject.
_ANSWERED = 10.0  # What it counts that a sentence answers the question, less its rank among those that do.
_AGREES = 0.5  # Share of what a wording adds to the question that an answer says, from which on both say the same.
_TOLD = 0.9  # Share of a wording's words that one sentence has, from which on it tells the same.
_ALIKE = 0.35  # Share of the wording's words from which on a sentence need not name the subject of its own article.

_WRAPPED = re.compile(r"(?<=[^\n]{40})\n(?=[^\n])")  # a line break in running text, not one after a heading
# No list item, markup or citation mark, and an end.
_WHOLE = re.compile(r"[\"“‘']{0,2}(?:\d|[^\W\d_])[^\n\[\]{}<>|@#*=^~\\_]*[.!][\"”’']{0,2}\Z")
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one)\b")
_FIRST_WORDS = 8
_URL = re.compile(r"https?:|www\.")
_PAIRS = ("()", "“”", "«»")
_POINTS_BACK = words_of("he she it they him her them his hers its their theirs himself herself itself themselves")
_GOES_ON = words_of(
    """this that these those such there here and but or nor so yet also then thus hence therefore however moreover
    furthermore additionally besides instead meanwhile otherwise nevertheless nonetheless consequently accordingly
    similarly likewise conversely afterwards subsequently indeed finally eventually still both another other others
    i we you my our your"""
)


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence of a passage, word for word."""

    passage: Passage
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a quotation is to stand: the question, the wording that it replaces, and the sentences before it.

    decided_by: the texts by which the wording was judged; answers: sentences that answer the question, best first.
    """

    question: str
    wording: str
    earlier: Sequence[str] = ()
    decided_by: Sequence[str] = ()
    answers: Sequence[str] = ()

    @property
    def names(self) -> AbstractSet[str]:
        """What a quotation must be about: the names in the question, else in the wording, else the question's words."""
        subject = subject_of(self.question)
        return names_of(subject) or names_of(self.wording) or stems_of(subject)


def quotations(passages: Sequence[Passage], place: Place) -> list[Quotation]:
    """Whole sentences of the passages that tell something new about the same, and can be understood there; best first.

    Where the question asks for one thing, only what answers it may stand. Else better is what has more words of the
    wording, of the question and of its names, by the veracity of its passage. An answer begins with a sentence that
    says what its subject is, or names it first, if there is one.
    """
    names, wording, question = place.names, stems_of(place.wording), stems_of(subject_of(place.question))
    has_no_names = not names_of(subject_of(place.question))
    asks_for_one_thing = not asks_for_all(place.question)
    numbers = _numbers(place.question)
    earlier = [stems_of(sentence) for sentence in place.earlier]
    best: dict[str, tuple[float, Quotation]] = {}
    for passage in passages:
        others = _numbers(passage.title)
        if numbers and others and numbers.isdisjoint(others):  # "Route 29", where "Route 50" is asked about
            continue
        title = stems_of(passage.title)
        if has_no_names and question and share_of(question, title | stems_of(passage.text)) < ABOUT:
            continue  # the names of the wording alone may be those of something else
        for text in whole_sentences(passage.text):
            own = stems_of(text)
            alike = share_of(wording, own)
            is_answer = text in place.answers
            if asks_for_one_thing and not is_answer:
                continue
            is_alike = is_answer or (bool(earlier) and alike >= _ALIKE)
            if text in best or not _fits(text, own, title, names, earlier, is_alike):
                continue
            likeness = alike + share_of(question, own | title) + share_of(names, own)
            likeness += _DECIDES * any(text in other for other in place.decided_by)
            likeness += _beginning(text, names) if not earlier else 0.0
            likeness += _ANSWERED - place.answers.index(text) if is_answer else 0.0
            best[text] = likeness * passage.veracity, Quotation(passage, text)
    ranked = sorted(best.values(), key=lambda pair: pair[0], reverse=True)
    return [quotation for _, quotation in ranked]


def answers_otherwise(question: str, wording: str, answers: Sequence[str], passages: Sequence[Passage]) -> bool:
    """Whether a wording says something else than the sentences that answer a question, or nothing of its own.

    Not where a sentence of the passages has nearly all of its words.
    """
    own, told = stems_of(wording), (stems_of(text) for one in passages for text in sentences_in(one.text))
    if not answers or any(share_of(own, other) >= _TOLD for other in told):
        return False
    return all(share_of(own - stems_of(question), stems_of(answer)) < _AGREES for answer in answers)


def num_shared(question: str, text: str) -> int:
    """How many of the words that ask, as stems, a text has."""
    return len(stems_of(subject_of(question)) & stems_of(text))


def _fits(
    text: str,
    own: AbstractSet[str],
    title: AbstractSet[str],
    names: AbstractSet[str],
    earlier: Sequence[AbstractSet[str]],
    is_alike: bool,
) -> bool:
    """Whether a sentence with these stems is about these names, says something new, and is clear after the last one.

    is_alike: whether it is so like the wording it replaces that its passage's title may name its subject.
    """
    leans = _leans(text, title or names)
    if leans and not (earlier and share_of(title or names, earlier[-1]) >= ABOUT):
        return False
    is_about = share_of(names, own | title) >= ABOUT
    is_named = leans or not names.isdisjoint(own) or (is_alike and share_of(names, title) >= ABOUT)
    is_new = all(share_of(own, before) < _SAID for before in earlier)
    is_new = is_new and share_of(own, set().union(*earlier)) < _ALL_SAID
    return is_about and is_named and is_new


def _beginning(text: str, names: AbstractSet[str]) -> float:
    """How well a sentence begins an answer: "Loudoun was a commander", "The Battle of Falkirk took place in 1298"."""
    verb = _SAYS_WHAT.search(text)
    first = text[: verb.start()] if verb else ""
    if verb and len(words(first)) <= _FIRST_WORDS and share_of(names, stems_of(first)) >= ABOUT:
        return _BEGINS
    return _NAMES_FIRST * (names <= {stem(word) for word in words(text)[:_FIRST_WORDS]})


def whole_sentences(text: str) -> Iterator[str]:
    """The sentences that can stand alone: neither headings nor lists, neither short nor long, with every bracket."""
    for sentence in sentences_in(text):
        spoken = words(sentence)
        if not FEWEST_WORDS <= len(spoken) <= MOST_WORDS or sentence[0].islower():
            continue
        if spoken[0] in _GOES_ON or "same" in spoken[:3]:
            continue
        is_paired = all(sentence.count(pair[0]) == sentence.count(pair[1]) for pair in _PAIRS)
        is_plain = is_paired and sentence.count('"') % 2 == 0 and not _URL.search(sentence)
        if is_plain and _WHOLE.match(sentence) and not addresses_the_reader(sentence):
            yield sentence


def sentences_in(text: str) -> Iterator[str]:
    """All sentences of a text, whose lines may be broken."""
    running = _WRAPPED.sub(" ", text)
    return (running[start:end] for start, end in _splitter.split(running))


def _leans(text: str, subject: AbstractSet[str]) -> bool:
    """Whether a pronoun comes before anything that names the subject, so that a sentence before must tell of whom."""
    for word in words(text):
        if stem(word) in subject:
            return False
        if word in _POINTS_BACK:
            return True
    return False


def _numbers(text: str) -> AbstractSet[str]:
    return {word for word in words(text) if any(map(str.isdigit, word))}


_splitter = SentenceSplitter()
