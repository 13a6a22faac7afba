"""Passes that draw the tokens after them by themselves, as captured ones do: the texts are the same, and when not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from engine_parts import Judge, Library, sentences
from mock_engine import Bench, MockRunner

from ewe.config import Config
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow
from ewe.engine.sampling.sampler import SamplingRow, sample_in_torch
from ewe.engine.scheduling.inflight_batch import SchedulerOutput, known_draws
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams

LENGTH = 12


class DrawingRunner(MockRunner):
    """Draws where it may, always into the same place, and leaves no logits behind then."""

    passes, draws = 0, 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._drawn = torch.full((8, 2), -1)

    def forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None) -> ForwardResult:  # type: ignore[override]
        result = super().forward(rows)
        self.passes += len(result.logits) > 0
        if not draws:
            return result
        self.draws += 1
        assert len(draws) == len(result.logits)
        tokens = sample_in_torch(result.logits, draws, False).read()
        bits = torch.tensor([token.logprob for token in tokens]).view(torch.int32)
        drawn = self._drawn[: len(tokens)]
        drawn.copy_(torch.stack([torch.tensor([token.id for token in tokens]), bits.long()], 1))
        return ForwardResult(torch.full_like(result.logits, torch.nan), result.attention, drawn)


class DrawingBench(Bench):
    runner_type = DrawingRunner


def written(bench: Bench, *requests: SamplingParams) -> dict[tuple[str, int], tuple[Any, ...]]:
    for name, params in zip("abc", requests, strict=False):
        bench.add(name, f"Tell {name}", params)
    found = bench.run()
    return {
        key: (item.token_ids, item.logprobs, item.top_logprobs, item.prompt_logprobs, item.stats.tokens_discarded)
        for key, item in found.items()
    }


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize(
    ("options", "others"),
    [
        ({"temperature": 0.0}, 0),
        ({"temperature": 0.9, "top_p": 0.8, "top_k": 5, "min_p": 0.01}, 0),
        ({"n": 3}, 1),  # the pass of the prompt, whose logits are for all three
        ({"min_tokens": 4}, 4),
        ({"logprobs": 2}, LENGTH),
        ({"presence_penalty": 0.5}, LENGTH),
        ({"logit_bias": {3: 2.0}}, LENGTH),
    ],
    ids=str,
)
def test_what_needs_more_than_a_token_from_the_models_logits_is_drawn_outside(
    options: dict[str, Any], others: int, ahead: bool
) -> None:
    values = Config.from_mapping({"policy": "plain", "scheduler": {"async_scheduling": ahead}})
    params = SamplingParams(max_tokens=LENGTH, seed=4, ignore_eos=True, **options)
    bench = DrawingBench(values)
    assert written(bench, params) == written(Bench(values), params)
    assert isinstance(bench.runner, DrawingRunner)
    assert bench.runner.passes - bench.runner.draws == others


def test_a_prompt_that_is_scored_has_logits_without_draws() -> None:
    writer: Any = SimpleNamespace(siblings=[], grammar=None, is_scored=False)
    drawn = SamplingRow(SamplingParams(), (), (), seed=1)
    row = ForwardRow([5], 0, np.arange(1))
    unit = replace(row, wants_logits=False)
    for scored, expected in ((False, [drawn]), (True, None)):
        plan = SchedulerOutput(units=[writer], sequences=[writer], rows=[unit, replace(row, all_logits=scored)])
        assert known_draws(plan, lambda sequence: drawn) == expected


@pytest.mark.parametrize("when", ["interval", "entropy"])
def test_texts_that_are_checked_and_rewritten_are_the_same(when: str) -> None:
    """Their passes draw, unless entropies are asked for; a neighbour with a penalty does not change that for good."""
    values = Config.from_mapping(
        {
            "feedback": {"verify_every": 3, "retrieve_every": 7, "verify_when": when, "verify_entropy": 0.0},
            "memory": {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2},
            "cache": {"block_size": 4},
        }
    )
    requests = [
        SamplingParams(max_tokens=40, temperature=0.9, seed=1),
        SamplingParams(max_tokens=9, temperature=0.9, seed=2, frequency_penalty=0.3),
        SamplingParams(max_tokens=40, seed=3),
    ]

    def refuted(sentence: str) -> Verdict:
        return Verdict.REFUTED if len(sentence) % 2 else Verdict.SUPPORTED

    benches = [kind(values, Library(), Judge(refuted), sentences) for kind in (DrawingBench, Bench)]
    found, expected = (written(bench, *requests) for bench in benches)
    assert found == expected
    assert any(discarded for *_, discarded in found.values())
    runner = benches[0].runner
    assert isinstance(runner, DrawingRunner)
    assert runner.draws == 0 if when == "entropy" else 0 < runner.draws < runner.passes
