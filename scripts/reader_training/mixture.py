"""What the reader is trained on: examples drawn from the sources, task by task."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from judge_training.pairs import key_of, sentences_of
from judge_training.swaps import Value

from reader_training.frames import DEFAULT_FRAME, Frame, Talk
from reader_training.neighbours import Neighbours
from reader_training.questions import askable, question_about, quote
from reader_training.records import Passage
from reader_training.sources import Claim, Sources

_SIZES = (1, 1, 2, 2, 3, 4, 4, 4, 5, 6, 8, 8)
_REFUSALS = ("The passages do not say.", "The context does not say.")
_BRIEF = ("Answer in a few words.", "Be brief.", "Give only the answer.")
_ABOUT = (
    "What does the context say about {}?",
    "Tell me about {}.",
    "What do you know about {}?",
    "Write a short text about {}.",
    "Who or what is {}?",
)
_OPENINGS = ("Context:\n", "Documents:\n", "Use these passages:\n", "Here is what I found:\n", "")
_UNITS = ("- {title}: {text}\n", "{title}\n{text}\n\n", "[{title}] {text}\n")
_ASKS = ("\nQuestion: {question}", "\nAnswer from the context: {question}", "\nUse the context. {question}")
_SYSTEMS = (
    "",
    "You are a helpful assistant.",
    "You answer questions from the passages that you are given.",
    "You are an encyclopedia. Say only what your sources say.",
)
_PRONOUN = re.compile(r"(?:He|She|It|They)\b")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question before its distractors: what answers it, and what a distractor must not hold."""

    question: str
    target: str
    right: tuple[Passage, ...]
    forbidden: tuple[str, ...] = ()
    others: tuple[Passage, ...] = ()
    taught: bool = True


class Mixture:
    """Draws talks; equal for equal random states."""

    def __init__(self, sources: Sources, chats: Sequence[tuple[str, str]]) -> None:
        self.sources, self.chats = sources, chats
        self._neighbours = Neighbours(sources.passages)
        self._prose = [passage for passage in sources.passages if passage.origin != "musique"]
        self._plain = [passage for passage in self._prose if not passage.title]
        self._titled: dict[str, list[Passage]] = {}
        for passage in self._prose:
            if passage.title:
                self._titled.setdefault(passage.title, []).append(passage)
        self._asking = [claim for claim in sources.claims if claim.true and _answered_values(claim)]
        self._makers: list[tuple[Callable[[Random], _Asked | None], float]] = [
            (self._question_of_claim, 0.28 if self._asking else 0),
            (self._question_of_passage, 0.36 if self._prose else 0),
            (self._is_it_true, 0.12 if sources.claims else 0),
            (self._about, 0.11 if self._titled else 0),
            (self._given_reading, 0.06 if sources.readings else 0),
            (self._unanswered, 0.03 if self._prose else 0),
        ]
        self._chat_share = 0.08 if chats else 0.0

    def draw(self, rng: Random) -> Talk:
        """One example."""
        if rng.random() < self._chat_share:
            return self._chat(rng)
        talk = self._talk(rng, self._asked(rng), rng.choice(_SIZES))
        if talk.units and rng.random() < 0.04:
            talk = self._second_turn(rng, talk)
        return replace(talk, frame=_frame(rng))

    def _asked(self, rng: Random) -> _Asked:
        makers, shares = zip(*self._makers, strict=True)
        while True:
            [make] = rng.choices(makers, shares)
            asked = make(rng)
            if asked is not None:
                return asked

    def _talk(self, rng: Random, asked: _Asked, size: int) -> Talk:
        """The question with its right passages at random places among up to `size`."""
        near = asked.question if rng.random() < 0.5 or not asked.right else asked.right[0].text
        origin = asked.right[0].origin if asked.right else ""
        own = rng.sample(asked.others, min(len(asked.others), max(0, size - len(asked.right))))
        missing = max(0, size - len(asked.right) - len(own))
        units = [*asked.right, *own, *self._neighbours.draw(rng, near, origin, missing, asked.forbidden)]
        rng.shuffle(units)
        right = tuple(number for number, passage in enumerate(units) if passage in asked.right)
        return Talk(asked.question, asked.target, tuple(units), right, taught=asked.taught)

    def _second_turn(self, rng: Random, talk: Talk) -> Talk:
        """The talk as a second turn, after a first question about another of its passages or some everyday words."""
        passage = rng.choice(talk.units)
        asked = self._question_about(rng, passage)
        first = (asked.question, asked.target) if asked else ("Hello!", "Hello! How can I help you?")
        return replace(talk, turns=(first,))

    def _question_of_claim(self, rng: Random) -> _Asked:
        """A question made of a claim in other words than the passage that supports it."""
        claim = rng.choice(self._asking)
        value, sentence = rng.choice(_answered_values(claim))
        question = question_about(rng, claim.text, value)
        return _answered(rng, question, value.text, sentence, self._crowded(rng, claim.passage))

    def _crowded(self, rng: Random, passage: Passage) -> Passage:
        """A short passage without title, often as part of a longer one: which sentence answers is to be found out."""
        if passage.title or rng.random() < 0.4 or not self._plain:
            return passage
        texts = [passage.text]
        while sum(len(text.split()) for text in texts) < 90:
            texts.append(rng.choice(self._plain).text)
        rng.shuffle(texts)
        return Passage("", " ".join(texts), passage.origin)

    def _question_of_passage(self, rng: Random) -> _Asked | None:
        return self._question_about(rng, rng.choice(self._prose))

    def _question_about(self, rng: Random, passage: Passage) -> _Asked | None:
        """A question about a value in one of the passage's sentences; None if the sentence drawn has none."""
        sentence = rng.choice(sentences_of(passage.text))
        subject = passage.title if passage.origin == "fool_me_twice" else ""
        named = _PRONOUN.sub(subject, sentence, count=1) if subject and _PRONOUN.match(sentence) else sentence
        values = [value for value in askable(named) if value.text in sentence]
        if not values or not 5 <= len(sentence.split()) <= 60:
            return None
        value = rng.choice(values)
        return _answered(rng, question_about(rng, named, value), value.text, sentence, passage)

    def _is_it_true(self, rng: Random) -> _Asked:
        claim = rng.choice(self.sources.claims)
        body = claim.text.rstrip(" .")
        question = rng.choice(("Is it true that {}?", "Is this true? {}.", "True or false? {}.")).format(body)
        words = set(key_of(claim.text).split())
        proof = max(claim.proof, key=lambda sentence: len(words & set(key_of(sentence).split())))
        verdict = ("True" if claim.true else "False") if "false" in question else ("Yes" if claim.true else "No")
        return _Asked(question, f"{verdict}. {quote(proof, '')}", (self._crowded(rng, claim.passage),), (proof[:60],))

    def _about(self, rng: Random) -> _Asked:
        """What up to three passages say about one or two things, sentence by sentence."""
        titles = rng.sample(list(self._titled), 2 if rng.random() < 0.3 else 1)
        found = [passage for title in titles for passage in self._titled[title]]
        chosen = rng.sample(found, min(len(found), rng.randint(1, 3)))
        told = [" ".join(sentences_of(passage.text)[: 4 - len(chosen)]) for passage in chosen]
        about = " and ".join(dict.fromkeys(passage.title for passage in chosen))
        return _Asked(rng.choice(_ABOUT).format(about), " ".join(told), tuple(chosen), tuple(titles))

    def _given_reading(self, rng: Random) -> _Asked:
        reading = rng.choice(self.sources.readings)
        taught = bool(reading.right)
        return _Asked(reading.question, reading.target, reading.right, reading.answers, reading.others, taught)

    def _unanswered(self, rng: Random) -> _Asked | None:
        """A question whose passage is missing."""
        asked = self._question_about(rng, rng.choice(self._prose))
        if asked is None or "?" not in asked.question:
            return None
        gone = tuple(sentences_of(passage.text)[0][:60] for passage in asked.right)
        return _Asked(asked.question, _REFUSALS[0], (), (*asked.forbidden, *gone), taught=False)

    def _chat(self, rng: Random) -> Talk:
        """An everyday prompt with the model's own answer: without memory, with an empty one, or with idle passages."""
        question, answer = rng.choice(self.chats)
        if rng.random() < 0.5:
            return Talk(question, answer, in_memory=False)
        units = self._neighbours.draw(rng, "", "", rng.choice((0, 1, 2, 4)), ())
        return Talk(question, answer, tuple(units))


def _answered_values(claim: Claim) -> list[tuple[Value, str]]:
    """The values of a claim that its proof has too, each with the sentence that has it."""
    return [(value, text) for value in askable(claim.text) for text in claim.proof if value.text in text]


def _answered(rng: Random, question: str, answer: str, sentence: str, passage: Passage) -> _Asked:
    """Answered with the sentence, with the value before it, or with the value alone if the question wants that."""
    drawn = rng.random()
    if drawn < 0.12:
        question, target = f"{question} {rng.choice(_BRIEF)}", f"{answer}."
    elif drawn < 0.3:
        target = f"{answer}. {quote(sentence, answer)}"
    else:
        target = quote(sentence, answer)
    return _Asked(question, target, (passage,), (answer, sentence[:60]))


def _frame(rng: Random) -> Frame:
    """Mostly the default words; each part of the frame differs in some examples."""
    frame = DEFAULT_FRAME
    if rng.random() < 0.15:
        frame = replace(frame, opening=rng.choice(_OPENINGS))
    if rng.random() < 0.1:
        frame = replace(frame, unit=rng.choice(_UNITS))
    if rng.random() < 0.15:
        frame = replace(frame, ask=rng.choice(_ASKS))
    if rng.random() < 0.2:
        frame = replace(frame, system=rng.choice(_SYSTEMS))
    return frame
