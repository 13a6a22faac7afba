"""Plain chat, so that nothing is forgotten: everyday prompts with the model's own answers from before the training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

from torch import nn

from reader_training.frames import Encoder, Talk
from reader_training.greedy import answers
from reader_training.packing import sequential_layout

_ANSWER_TOKENS = 96
_REQUESTS = (
    "Write a short poem about {}.",
    "Explain {} to a child.",
    "Give me three tips about {}.",
    "What do most people get wrong about {}?",
    "Write the first lines of a story about {}.",
    "Tell me about {}.",
    "Why does {} matter?",
    "Write a friendly email that mentions {}.",
    "List five words that have to do with {}.",
    "What should I know before I start with {}?",
    "Make up a slogan for {}.",
    "Describe {} in one sentence.",
    "What is a good question to ask an expert on {}?",
    "Compare {} with something that it is often mistaken for.",
)
_TOPICS = """
gardening; sleep; the Moon; volcanoes; chess; bread; learning French; saving money; bicycles; public speaking; bees;
jazz; writing code; running; the French Revolution; photosynthesis; electric cars; tea; job interviews; rivers;
friendship; robots; cooking pasta; meditation; libraries; the human heart; rain; school; maps; football; photography;
honesty; computers; travelling by train; black holes; painting; cats; recycling; ancient Rome; fractions
"""
_OTHERS = """
Hello! How are you?; What can you do?; Tell me a joke.; What is 17 plus 25?; Thank you for your help.; What is the
capital of France?; Translate "good morning" into Spanish.; Write a Python function that adds two numbers.; Name three
colours.; Who are you?; Correct this sentence: He go to school every days.; What is the opposite of "cold"?; Count
from one to ten.; Good night!
"""


def prompts(count: int, seed: int) -> list[str]:
    """`count` everyday requests at most, without repetition."""
    topics = [" ".join(topic.split()) for topic in _TOPICS.split(";")]
    others = [" ".join(other.split()) for other in _OTHERS.split(";")]
    made = [request.format(topic) for request, topic in product(_REQUESTS, topics)]
    return [*others, *Random(f"chat/{seed}").sample(made, len(made))][:count]


def own_answers(model: nn.Module, encoder: Encoder, asked: Sequence[str], file: Path) -> list[tuple[str, str]]:
    """(prompt, the model's greedy answer) per prompt; read from `file` if that exists, else computed and written."""
    if file.exists():
        return [(prompt, answer) for prompt, answer in json.loads(file.read_text())]
    examples = [encoder.encode(Talk(prompt, "", in_memory=False)) for prompt in asked]
    end = encoder.end
    found = answers(model, examples, lambda example: sequential_layout(example, ()), end, _ANSWER_TOKENS)
    pairs = [(prompt, encoder.tokenizer.decode(ids).strip()) for prompt, ids in zip(asked, found, strict=True)]
    file.write_text(json.dumps(pairs, ensure_ascii=False, indent=0))
    return pairs
