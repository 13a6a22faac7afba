"""How well a model answers from passages: in the prompt, and as units read in parallel.

The measure: one of the right answers stands in the greedy answer. SQuAD 2 is for choices during training, XQuAD for the
report; nothing of either is trained on.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from torch import nn

from reader_training.frames import Encoder, Talk
from reader_training.greedy import answers
from reader_training.packing import parallel_layout, sequential_layout
from reader_training.records import Passage, read_rows

ANSWER_TOKENS = 48
KS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its right answers, its right passage and others to stand beside it."""

    question: str
    answers: tuple[str, ...]
    right: Passage
    others: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How passages are given: `k` of them, as `units`, in the `prompt`, or none ("nothing")."""

    place: str
    k: int = 0

    def __str__(self) -> str:
        return f"{self.place} {self.k}" if self.k else self.place


WAYS = (*(Way("units", k) for k in (4, 8, 1, 2)), *(Way("prompt", k) for k in (1, 4, 8, 2)), Way("nothing"))


def read_squad2(data: Path, count: int) -> list[Item]:
    """The answerable questions of squad2, `count` of them spread over all articles."""
    passages = {row["id"]: Passage(row["title"], row["text"]) for row in read_rows(data / "squad2" / "passages.jsonl")}
    rows = [row for row in read_rows(data / "squad2" / "questions.jsonl") if row["answerable"]]
    asked = [(row["question"], tuple(row["answers"]), passages[row["passage"]]) for row in rows]
    return _items(asked, list(passages.values()), count)


def read_xquad(data: Path, count: int) -> list[Item]:
    """`count` questions of XQuAD's English part, spread over all articles; its paragraphs have no titles."""
    asked = []
    pool = []
    for article in json.loads((data / "xquad_en" / "xquad.en.json").read_text())["data"]:
        for paragraph in article["paragraphs"]:
            pool.append(Passage("", paragraph["context"]))
            for row in paragraph["qas"]:
                asked.append((row["question"], tuple(answer["text"] for answer in row["answers"]), pool[-1]))
    return _items(asked, pool, count)


def _items(asked: Sequence[tuple[str, tuple[str, ...], Passage]], pool: Sequence[Passage], count: int) -> list[Item]:
    step = max(1.0, len(asked) / count)
    chosen = [asked[int(number * step)] for number in range(min(count, len(asked)))]
    items = []
    for question, right_answers, right in chosen:
        others = Random(question).sample([passage for passage in pool if passage != right], max(KS) - 1)
        items.append(Item(question, right_answers, right, tuple(others)))
    return items


def talk_of(item: Item, k: int) -> Talk:
    """The question with k passages, the right one at a place drawn from the question."""
    if not k:
        return Talk(item.question, "", in_memory=False)
    place = Random(item.question + str(k)).randrange(k)
    units = [*item.others[: k - 1]]
    units.insert(place, item.right)
    return Talk(item.question, "", tuple(units), (place,))


def answer_all(model: nn.Module, encoder: Encoder, items: Sequence[Item], way: Way) -> list[str]:
    """The greedy answers of `model` to all items."""
    examples = [encoder.encode(talk_of(item, way.k)) for item in items]
    examples = [replace(example, target=[]) for example in examples]
    end = encoder.end
    if way.place == "units":
        found = answers(model, examples, lambda e: parallel_layout(e, encoder.unit_tokens), end, ANSWER_TOKENS)
    else:
        found = answers(model, examples, lambda e: sequential_layout(e, range(len(e.units))), end, ANSWER_TOKENS)
    return [encoder.tokenizer.decode(ids, skip_special_tokens=True) for ids in found]


def is_right(answer: str, right: Iterable[str]) -> bool:
    """Whether one of the right answers stands in the answer, whatever case, articles and punctuation."""
    plain = f" {_plain(answer)} "
    return any(f" {_plain(text)} " in plain for text in right if _plain(text))


def _plain(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The 95% interval of a share `hits / count` (Wilson 1927)."""
    z, share = 1.96, hits / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)


def measure(model: nn.Module, encoder: Encoder, items: Sequence[Item], way: Way) -> dict[str, object]:
    """Right answers, their number, the interval, and the first answers to look at."""
    given = answer_all(model, encoder, items, way)
    hits = sum(is_right(answer, item.answers) for answer, item in zip(given, items, strict=True))
    shown = [[item.question, item.answers[0], answer] for item, answer in zip(items[:8], given[:8], strict=True)]
    low, high = wilson(hits, len(items))
    return {"right": hits, "of": len(items), "low": round(low, 3), "high": round(high, 3), "answers": shown}
