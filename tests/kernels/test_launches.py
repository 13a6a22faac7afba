"""How many kernels a captured decoding step launches, counted on the stand-in for a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernels.test_static_engine import SHAPE
from stand_in_gpu import DEVICE, in_place
from triton_interpreter import INTERPRETED

from benchmarks.common import SMOKE
from benchmarks.launches import counted, figures_of, kind_of, launched_by_host, step_of
from benchmarks.rig import load_synthetic

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="there is a real GPU")
LAYERS = 2
# What is launched does not depend on how wide the layers are.
SMALL = replace(SMOKE, unit_tokens=4, model={**SMOKE.model, **SHAPE, "num_hidden_layers": LAYERS})


@pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_step_launches_thirteen_kernels_per_layer_and_fifteen_more_at_most(batch):
    with in_place():
        names = counted(step_of(load_synthetic(SMALL, "cuda"), SMALL.unit_tokens, batch))
        by_host = launched_by_host(names)
    figures = figures_of(names, LAYERS, batch)
    assert figures[f"batch_{batch}_per_layer"] <= 13, names
    # Attention and, where rows can share units, attention over what they share.
    assert figures[f"batch_{batch}_attention"] == LAYERS * min(batch, 2)
    assert figures[f"batch_{batch}_product"] == 4 * LAYERS + 1
    assert figures[f"batch_{batch}_norm"] == 2 * LAYERS + 1
    assert figures[f"batch_{batch}_sampling"] == 3
    assert figures[f"batch_{batch}_launches"] == sum(names.values())
    # The step and its draws are uploaded, the graph is replayed, the tokens come back.
    assert by_host == 3, names


def test_a_refresh_is_replayed_with_the_step():
    """For a unit, too, the host uploads, replays and reads, however many layers there are."""
    with in_place():
        names = counted(step_of(load_synthetic(SMALL, "cuda"), SMALL.unit_tokens, 2, refresh=True))
        by_host = launched_by_host(names)
    assert len(DEVICE.replayed) == 1
    assert by_host == 3, names
    assert names.total() <= 14 * LAYERS + 16, names


def test_kinds_are_told_by_names():
    assert kind_of("nvjet_tst_128x64_64x7_1x2_h_bz_coopA_NTT") == "product"
    assert kind_of("_rotary_write_kernel") == "rotary and write"
    assert kind_of("Memcpy HtoD (Pinned -> Device)") == "copy"
    assert kind_of("void at::native::vectorized_elementwise_kernel") == "other"
