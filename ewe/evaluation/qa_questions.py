"""Questions with answers, each with the passage that answers it and others that do not."""

import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from ewe.errors import ConfigError
from ewe.types import Passage

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its right answers (at least one), and the passage that tells them."""

    id: str
    text: str
    answers: tuple[str, ...]
    passage: Passage

    def is_exact(self, answer: str) -> bool:
        """Whether a text is a right answer, up to case, punctuation, articles and blanks."""
        return normalised(answer) in map(normalised, self.answers)

    def is_contained(self, answer: str) -> bool:
        """Whether the words of a right answer stand in a text, next to each other."""
        return any(contains(right, answer) for right in self.answers)


def read_questions(path: Path, passages: Iterable[Passage] = ()) -> list[Question]:
    """The questions of a file, those without an answer left out.

    A .json file is in SQuAD's format. Any other holds one JSON object per line: question, answers (texts), and passage
    (its text, or the id of one of `passages`) with title, or passage_id; id is the line's number if it is not there.
    Raises ConfigError naming the line.
    """
    known = {passage.id: passage for passage in passages}
    try:
        text = path.read_text(encoding="utf-8")
        as_lines = (json.loads(line) for line in text.splitlines() if line.strip())
        items = _from_squad(json.loads(text)) if path.suffix == ".json" else as_lines
        rows = [_question(values, known, f"{path}:{number}") for number, values in enumerate(items, 1)]
    except (OSError, ValueError) as error:
        raise error if isinstance(error, ConfigError) else ConfigError(f"cannot read {path}: {error}") from error
    except (LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not in SQuAD's format: {error}") from error
    answerable = [question for question in rows if question.answers]
    if not answerable:
        raise ConfigError(f"{path} holds no question with an answer")
    return answerable


def beside(question: Question, pool: Sequence[Passage], count: int) -> list[Passage]:
    """The right passage at a place that is drawn, among count - 1 others of the pool; the same at every call."""
    draw = Random(f"{question.id}\n{question.text}")
    others = [passage for passage in pool if passage.text != question.passage.text]
    chosen = draw.sample(others, len(others))[: count - 1]
    place = int(draw.random() * count)
    return [*chosen[:place], question.passage, *chosen[place:]]


def contains(right: str, answer: str) -> bool:
    """Whether the words of a text stand in an answer, next to each other (the rule of SQuAD)."""
    return f" {normalised(right)} " in f" {normalised(answer)} "


def normalised(text: str) -> str:
    """A text in lower case without punctuation and articles, words one blank apart (the rule of SQuAD)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _from_squad(document: Any) -> Iterator[Mapping[str, Any]]:
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            shared = {"title": article.get("title", "").replace("_", " "), "passage": paragraph["context"]}
            for item in paragraph["qas"]:
                answers = [answer["text"] for answer in item["answers"]]
                yield {"id": item["id"], "question": item["question"], "answers": answers, **shared}


def _question(values: Any, known: Mapping[str, Passage], place: str) -> Question:
    if not isinstance(values, dict) or not isinstance(values.get("question"), str):
        raise ConfigError(f"{place}: expected a JSON object with question, answers and passage")
    answers = values.get("answers")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise ConfigError(f"{place}: answers must be a list of texts")
    return Question(
        id=str(values.get("id", place.rpartition(":")[2])),
        text=values["question"],
        answers=tuple(answers),
        passage=_passage(values, known, place),
    )


def _passage(values: Mapping[str, Any], known: Mapping[str, Passage], place: str) -> Passage:
    name = values.get("passage_id", values.get("passage"))
    if isinstance(name, str) and name in known:
        return known[name]
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{place}: name the passage that answers the question, as passage or passage_id")
    if "passage_id" in values:
        raise ConfigError(f"{place}: the datastore holds no passage {name!r}")
    return Passage(id=sha256(name.encode()).hexdigest()[:16], text=name, title=str(values.get("title", "")))
