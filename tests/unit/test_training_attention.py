"""The training attention against the literal eq. 1 of Chen et al. 2024, in float64."""

import random
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from builtin_training.attention import Guide, training_attention
from builtin_training.batch import LossWeights, collate
from builtin_training.example import Example, Goal, Span, View, add_distractors
from builtin_training.layout import FLAT_STEP

HEADS, KV_HEADS, DIM = 4, 2, 8
TOLERANCE = 1e-7
"""The biases of a batch are kept in float32."""


def make_examples() -> list[Example]:
    """Two contexts that share a unit; memory and weights change within the second."""
    units = [tuple(range(10, 16)), tuple(range(20, 23)), tuple(range(30, 39))]
    first = Example((units[0], units[1]), (0, 5, 6, 7, 1), 2, (View((0, 1), (1.0, 1.0)),), (0,) * 5)
    views = (View(), View((1,), (0.3,)), View((0, 1), (0.25, 0.9)))
    second = Example((units[1], units[2]), tuple(range(40, 51)), 3, views, (0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2))
    return [first, second]


def literal(
    query: torch.Tensor, segments: list[tuple[torch.Tensor, torch.Tensor]], weights: list[float]
) -> torch.Tensor:
    """Eq. 1 word for word for one query [H, D]: attention over [unit; context] per unit and over the context alone
    (last of `segments`, pairs of [T, H, D]), averaged by weighted normalisers.
    """
    outputs, normalisers = [], []
    context_key, context_value = segments[-1]
    nothing = (context_key[:0], context_value[:0])
    for (key, value), weight in zip([*segments[:-1], nothing], [*weights, 1.0], strict=True):
        keys, values = torch.cat([key, context_key]), torch.cat([value, context_value])
        scores = torch.einsum("hd,thd->ht", query, keys).exp()
        outputs.append(torch.einsum("ht,thd->hd", scores / scores.sum(-1, keepdim=True), values))
        normalisers.append(weight * scores.sum(-1))
    total = torch.stack(normalisers).sum(0)
    return sum(n[:, None] * o for n, o in zip(normalisers, outputs, strict=True)) / total[:, None]


def test_training_attention_is_equation_1() -> None:
    torch.manual_seed(0)
    examples = make_examples()
    batch = collate(examples, 16, random.Random(0), LossWeights())
    length = 6 + 3 + 9 + 5 + 11  # the shared unit is encoded once
    assert batch.input_ids.shape[1] == FLAT_STEP
    assert not batch.input_ids[0, length:].any()
    query, key, value = (torch.randn(1, h, FLAT_STEP, DIM, dtype=torch.float64) for h in (HEADS, KV_HEADS, KV_HEADS))
    got, _ = training_attention(None, query, key, value, None, None, batch.layout.to("cpu", torch.float64))
    q = query[0].transpose(0, 1) * DIM**-0.5
    k, v = (part[0].transpose(0, 1).repeat_interleave(HEADS // KV_HEADS, 1) for part in (key, value))
    ids = batch.input_ids[0].tolist()

    def part(tokens: tuple[int, ...]) -> slice:
        start = next(i for i in range(length) if tuple(ids[i : i + len(tokens)]) == tokens)
        return slice(start, start + len(tokens))

    for example in examples:
        context = part(example.context)
        for index in range(len(example.context)):
            view = example.views[example.view_of[index]]
            seen = [part(example.units[unit]) for unit in view.units] + [
                slice(context.start, context.start + index + 1)
            ]
            expected = literal(q[context.start + index], [(k[s], v[s]) for s in seen], list(view.weights))
            torch.testing.assert_close(got[0, context.start + index], expected, rtol=0, atol=TOLERANCE)
        for unit in example.units:
            for index in range(len(unit)):
                own = slice(part(unit).start, part(unit).start + index + 1)
                expected = literal(q[part(unit).start + index], [(k[own], v[own])], [])
                torch.testing.assert_close(got[0, part(unit).start + index], expected, rtol=0, atol=TOLERANCE)


def test_guiding_losses_are_the_attention_that_misses_the_goals() -> None:
    """Context token 2 repeats token 1 of both units; its query and a unit's token should look at names as well."""
    torch.manual_seed(1)
    units, weights = ((10, 11, 12), (20, 11)), (0.5, 1.0)
    example = Example(
        units,
        (0, 5, 11, 1),
        2,
        (View(), View((0, 1), weights)),
        (0, 1, 1, 1),
        goals=(Goal("subject", 1, (0, 1)),),
        copies=(Goal("copy", 1, (1, 4)),),
        unit_goals=((Goal("subject", 2, (0, 1)),), ()),
    )
    layout = collate([example], 16, random.Random(0), LossWeights()).layout.to("cpu", torch.float64)
    query, key, value = (torch.randn(1, h, FLAT_STEP, DIM, dtype=torch.float64) for h in (HEADS, KV_HEADS, KV_HEADS))
    guide, module = Guide({"subject": (1, 0), "copy": (3, 0)}), torch.nn.Module()
    for module.layer_idx in range(4):
        training_attention(module, query, key, value, None, None, layout, guide)
    q, k = query[0, : HEADS // KV_HEADS] * DIM**-0.5, key[0, 0]  # flat: units at 0 and 3, context at 5
    exps = (q[:, 6] @ k[:7].T).exp() * torch.tensor([0.5] * 3 + [1.0] * 2 + [2.5] * 2, dtype=torch.float64)
    shares = exps / exps.sum(-1, keepdim=True)
    unit_shares = torch.softmax(q[:, 2] @ k[:3].T, -1)
    copy = -(shares[:, 1] + shares[:, 4]).log().mean()
    subject = -torch.cat([shares[:, 5:7], unit_shares[:, :2]]).log().mean()
    torch.testing.assert_close(guide.loss("copy").double(), copy, rtol=0, atol=1e-5)
    torch.testing.assert_close(guide.loss("subject").double(), subject, rtol=0, atol=1e-5)


def test_positions_and_targets() -> None:
    examples = make_examples()
    batch = collate(examples, 16, random.Random(0), LossWeights(unit=0.0, value=3.0, unknown=0.5))
    positions = batch.position_ids[0, :34].tolist()
    assert positions == [*range(6), *range(3), *range(9), *range(16, 21), *range(16, 27)]
    answers = [token for example in examples for token in example.context[example.answer_start :]]
    assert batch.targets.tolist() == answers
    assert batch.input_ids[0, batch.predict + 1].tolist() == answers


def test_copied_values_weigh_more_and_guessed_ones_less() -> None:
    example = make_examples()[0]
    spans = (Span(2, 3, "birth_year", True), Span(3, 4, "death_year", False))
    marked = Example(example.units, example.context, 2, example.views, example.view_of, spans)
    batch = collate([marked], 16, random.Random(0), LossWeights(unit=0.0, value=3.0, unknown=0.5))
    assert batch.weights.tolist() == [3.0, 0.5, 1.0]
    assert batch.is_value.tolist() == [True, False, False]


@pytest.mark.parametrize("seed", range(5))
def test_distractors_are_visible_everywhere_and_leave_the_lesson_as_it_was(seed: int) -> None:
    examples = make_examples()
    for before, after in zip(examples, add_distractors(examples, random.Random(seed), 4, 1.0), strict=True):
        assert after.units[: len(before.units)] == before.units
        added = set(range(len(before.units), len(after.units)))
        assert max(len(view.units) for view in after.views) <= 4
        assert not {after.units[unit] for unit in added} & set(before.units)
        for old, new in zip(before.views, after.views, strict=True):
            assert new.units == (*old.units, *sorted(added))
            assert new.weights == (*old.weights, *[1.0] * len(added))
