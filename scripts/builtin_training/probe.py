"""The probe: how often the model copies a value exactly from the right one of several units.

Given the sentence up to the value, greedy decoding writes the value exactly if and only if every one of its tokens has
the largest logit, so one forward pass per batch is enough. Runs in float32.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

from builtin_training.batch import LossWeights, collate
from builtin_training.example import Example, Span
from builtin_training.examples import LessonExamples
from builtin_training.lesson_memory import LessonSettings
from builtin_training.lessons import sample_lesson

PROBE_SEED = 7


@dataclass(slots=True)
class Tally:
    """Exact copies and trials per key."""

    right: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)

    def add(self, key: str, is_right: bool) -> None:
        """Counts one trial."""
        self.right[key] += is_right
        self.tried[key] += 1

    def share(self, key: str) -> float:
        """Share of exact copies; 0 without trials."""
        return self.right[key] / max(self.tried[key], 1)

    def __str__(self) -> str:
        return ", ".join(f"{key} {self.share(key):.1%} of {self.tried[key]}" for key in sorted(self.tried))


def probe_settings(num_units: int, pronoun_rate: float = 0.3) -> LessonSettings:
    """Lessons about people kept for tests, with exactly `num_units` units in memory and nothing missing."""
    return LessonSettings(
        min_units=num_units,
        max_units=num_units,
        max_total_units=num_units + 6,
        missing_rate=0.0,
        no_memory_rate=0.0,
        weighted_rate=0.0,
        pronoun_rate=pronoun_rate,
        kind_weights=(0.5, 0.4, 0.05, 0.05),
        split="test",
    )


@torch.no_grad()
def measure(
    model: LlamaForCausalLM, examples: list[Example], unit_tokens: int, device: str = "cpu"
) -> list[tuple[Example, Span, bool]]:
    """Each copied span that the text before it determines: with its example, and whether every one of its tokens has
    the largest logit (float32).
    """
    batch = collate(examples, unit_tokens, random.Random(0), LossWeights(unit=0.0))
    hidden = model.model(
        input_ids=batch.input_ids.to(device),
        position_ids=batch.position_ids.to(device),
        use_cache=False,
        layout=batch.layout.to(device, torch.float32),
    ).last_hidden_state
    logits = model.lm_head(hidden[0].index_select(0, batch.predict.to(device)))
    hits = (logits.argmax(-1).cpu() == batch.targets).tolist()
    results, first = [], 0
    for example in examples:
        for span in example.spans:
            if span.copied and span.determined:
                right = all(hits[first + token - example.answer_start] for token in range(span.start, span.end))
                results.append((example, span, right))
        first += len(example.context) - example.answer_start
    return results


def probe(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, unit_tokens: int, lessons: int, device: str = "cpu"
) -> str:
    """Shares of exact copies with 1, 2, 4 and 8 units in memory, and with 8 by fact type; `lessons` lessons each."""
    source = LessonExamples(tokenizer, unit_tokens)
    lines = []
    for num_units in (1, 2, 4, 8):
        rng = random.Random(PROBE_SEED)
        by_kind, total = Tally(), Tally()
        drawn = [source.encode(sample_lesson(rng, probe_settings(num_units))) for _ in range(lessons)]
        for first in range(0, lessons, 20):
            part = drawn[first : first + 20]
            for _, span, right in measure(model, part, unit_tokens, device):
                by_kind.add(span.kind, right)
                total.add("all", right)
        lines.append(f"probe with {num_units} units: {total}")
    return "\n".join([*lines, f"  by fact type: {by_kind}"])
