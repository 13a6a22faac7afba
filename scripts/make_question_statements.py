"""Makes claims out of questions: a chat model puts question and answer into a sentence, filters keep the good ones.

Run by hand: `python scripts/make_question_statements.py --model FOLDER --output FILE`. Questions are those of `squad2`
(without the articles that are reported on) and `xquad_en`. A sentence is kept if it holds the answer and most of the
question's words. Its false twin has another answer of the same kind from the same passage. A run that was killed goes
on where its file ends.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from chat_model_files import place_of
from judge_training.claim_corpus import REPORTED
from judge_training.sources import read_rows, read_xquad
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[1]
_EXAMPLES = (
    ("When did the bridge open to traffic?", "in May 1931", "The bridge opened to traffic in May 1931."),
    (
        "Who wrote the letter that reached Lima?",
        "Francisco Rojas",
        "Francisco Rojas wrote the letter that reached Lima.",
    ),
    (
        "What is the name of the river that flows past the old mill?",
        "Ilm",
        "The river that flows past the old mill is called the Ilm.",
    ),
    ("How many members did the union have in 1912?", "about 4,000", "The union had about 4,000 members in 1912."),
    (
        "Why did the settlers leave the island?",
        "a lack of fresh water",
        "The settlers left the island because of a lack of fresh water.",
    ),
    ("What do bees collect besides nectar?", "pollen", "Besides nectar, bees collect pollen."),
)
_WORD = re.compile(r"[A-Za-z]{4,}|\d+")
_QUESTION_WORDS = frozenset(
    ("what", "when", "where", "which", "whom", "whose", "name", "many", "much", "does", "kind", "type")
)
_LEAST_SHARED = 0.7


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer and the passage that has both."""

    passage: str
    text: str
    answer: str


def questions(data: Path) -> list[Question]:
    """All that have an answer, without the articles that are reported on."""
    titles = {row["id"]: row["title"] for row in read_rows(data / "squad2" / "passages.jsonl")}
    found = [
        Question(row["passage"], row["question"].strip(), min(row["answers"], key=len))
        for row in read_rows(data / "squad2" / "questions.jsonl")
        if row["answerable"] and titles[row["passage"]].replace("_", " ") not in REPORTED
    ]
    return found + [
        Question(name, row["question"].strip(), row["answers"][0]["text"])
        for name, title, paragraph in read_xquad(data)
        if title not in REPORTED
        for row in paragraph["qas"]
    ]


class Writer:
    """A chat model that goes on after examples; what it has read of them is kept."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(**place_of(folder), local_files_only=True, padding_side="left")
        self._model: Any = AutoModelForCausalLM.from_pretrained(
            **place_of(folder), local_files_only=True, dtype=torch.float32
        ).eval()
        self._tokenizer.pad_token = self._tokenizer.pad_token or self._tokenizer.eos_token
        shown = "\n".join(f"Question: {q}\nAnswer: {a}\nSentence: {s}\n" for q, a, s in _EXAMPLES)
        self._examples: torch.Tensor = self._tokenizer(shown, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            self._read = self._model(self._examples, use_cache=True).past_key_values

    @torch.inference_mode()
    def sentences(self, asked: Sequence[Question]) -> list[str]:
        """Question and answer as one sentence each, greedily."""
        texts = [f"\nQuestion: {one.text}\nAnswer: {one.answer}\nSentence:" for one in asked]
        inputs = self._tokenizer(texts, return_tensors="pt", padding=True)
        examples = self._examples.expand(len(asked), -1)
        ids = torch.cat([examples, inputs["input_ids"]], 1)
        mask = torch.cat([torch.ones_like(examples), inputs["attention_mask"]], 1)
        read = deepcopy(self._read)
        read.batch_repeat_interleave(len(asked))
        made = self._model.generate(
            input_ids=ids, attention_mask=mask, past_key_values=read, max_new_tokens=40, do_sample=False,
            stop_strings=["\n"], tokenizer=self._tokenizer,
        )  # fmt: skip
        said = self._tokenizer.batch_decode(made[:, ids.shape[1] :], skip_special_tokens=True)
        return [text.split("\n")[0].strip() for text in said]


def is_good(question: Question, sentence: str) -> bool:
    """Whether a sentence holds the answer once and most of the question's words, and is one sentence."""
    words = {word.lower()[:5] for word in _WORD.findall(question.text)} - {word[:5] for word in _QUESTION_WORDS}
    own = {word.lower()[:5] for word in _WORD.findall(sentence)}
    shared = len(words & own) / max(1, len(words))
    one = sentence.endswith(".") and "?" not in sentence and 5 <= len(sentence.split()) <= 45
    return one and sentence.lower().count(question.answer.lower()) == 1 and shared >= _LEAST_SHARED


def kind_of(answer: str) -> str:
    """Year, number, name or phrase: what an answer may be replaced by."""
    if re.search(r"\b1\d\d\d\b|\b20\d\d\b", answer):
        return "year"
    if re.search(r"\d", answer):
        return "number"
    words = [word for word in answer.split() if word.lower() not in ("the", "of", "and", "a", "in", "de")]
    return "name" if words and all(word[:1].isupper() for word in words) else "phrase"


def twin(rng: Random, question: Question, sentence: str, beside: Sequence[Question]) -> str | None:
    """The sentence with another answer of the same kind from the same passage, if there is one."""
    own = question.answer.lower()
    fitting = [
        one.answer
        for one in beside
        if kind_of(one.answer) == kind_of(question.answer)
        and one.answer.lower() not in own
        and own not in one.answer.lower()
        and one.answer.lower() not in sentence.lower()
        and abs(len(one.answer.split()) - len(question.answer.split())) <= 2
    ]
    if not fitting:
        return None
    start = sentence.lower().index(own)
    return sentence[:start] + rng.choice(fitting) + sentence[start + len(own) :]


def claims(asked: Sequence[Question], said: Sequence[str]) -> Iterator[dict[str, str]]:
    """Rows of the claims that pass: true sentences and their false twins."""
    by_passage: dict[str, list[Question]] = {}
    for one in asked:
        by_passage.setdefault(one.passage, []).append(one)
    rng = Random("question statements")
    for question, sentence in zip(asked, said, strict=True):
        if not is_good(question, sentence):
            continue
        yield {"passage": question.passage, "claim": sentence, "label": "supported", "kind": "question"}
        other = twin(rng, question, sentence, by_passage[question.passage])
        if other is not None:
            yield {"passage": question.passage, "claim": other, "label": "refuted", "kind": "question"}


def main() -> None:
    """Asks the model for what is not there yet, then filters and writes the claims."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    args = parser.parse_args()
    raw = args.output.with_suffix(".raw.jsonl")
    asked = questions(args.data)
    said = [row["said"] for row in read_rows(raw)] if raw.exists() else []
    writer = Writer(args.model) if len(said) < len(asked) else None
    while writer and len(said) < len(asked):
        new = writer.sentences(asked[len(said) : len(said) + 24])
        with raw.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"said": one}, ensure_ascii=False) + "\n" for one in new)
        said += new
    rows = list(claims(asked, said))
    args.output.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} claims of {len(asked)} questions")


if __name__ == "__main__":
    main()
