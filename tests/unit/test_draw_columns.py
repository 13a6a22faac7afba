"""What draws are told of their rows, step after step, is what each step alone would be told."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.engine.sampling import draw_columns
from ewe.engine.sampling.draw_columns import DrawColumns
from ewe.engine.sampling.sampler import SamplingRow, uniform
from ewe.types.sampling_params import SamplingParams

SEEDS = st.integers(-(2**70), 2**70)


def new_row(seed: int, position: int = 0, temperature: float = 1.0, stream: int = 0) -> SamplingRow:
    params = SamplingParams(temperature=temperature, top_p=0.5 + (seed % 5) / 10, top_k=seed % 7)
    return SamplingRow(params, (), [0] * position, seed, stream=stream, temperature=temperature)


def expected(rows: list[SamplingRow]) -> dict[str, list[float]]:
    return {
        "temperatures": [np.float32(row.temperature) for row in rows],
        "top_ks": [row.params.top_k for row in rows],
        "top_ps": [np.float32(row.params.top_p) for row in rows],
        "min_ps": [row.params.min_p for row in rows],
        "points": [np.float32(uniform(row)) if row.temperature else 0.0 for row in rows],
    }


@settings(max_examples=60)
@given(
    st.lists(st.tuples(SEEDS, st.integers(0, 40), st.sampled_from([0.7, 1.0, 0.0])), min_size=6, max_size=9),
    st.lists(st.sampled_from(["on", "on", "on", "skip", "again", "rewind", "leave", "join", "cut"]), max_size=14),
)
def test_columns_of_step_after_step_are_those_of_each_step_alone(
    streams: list[tuple[int, int, float]], events: list[str]
) -> None:
    rows, columns = [new_row(*stream) for stream in streams], DrawColumns()
    for number, event in enumerate(["again", *events]):
        if event == "leave" and len(rows) > 1:
            rows = rows[1:]
        elif event == "join":
            rows.insert(number % (len(rows) + 1), new_row(number))
        elif event == "rewind":  # a text that went back draws from another stream
            first = rows[0]
            length = max(len(first.output_ids) - 5, 0)
            rows = [new_row(first.seed, length, first.temperature, first.stream + 1), *rows[1:]]
        if event == "cut":
            del rows[0].output_ids[-3:]  # type: ignore[attr-defined]
        for row in rows if event in ("on", "skip") else ():
            row.output_ids.extend([0] * (1 if event == "on" else 11))  # type: ignore[attr-defined]
        found = columns.of(rows)
        assert {name: column.tolist() for name, column in found.items()} == expected(rows)


def test_numbers_are_computed_for_some_steps_at_once(monkeypatch) -> None:
    """Neither steps that follow nor a row that comes or goes have those of the others computed anew."""
    computed = 0
    real = draw_columns.first_uniforms

    def count(*streams):
        nonlocal computed
        computed += 1
        return real(*streams)

    monkeypatch.setattr(draw_columns, "first_uniforms", count)
    rows, columns = [new_row(seed) for seed in range(9)], DrawColumns()
    columns.of(rows)
    for _ in range(4):
        for row in rows:
            row.output_ids.append(0)  # type: ignore[attr-defined]
        columns.of(rows)
    columns.of(rows[2:])
    columns.of([*rows[2:], new_row(99)])
    assert computed == 1
