"""Tenants take turns where requests wait to be let in; of one tenant the older comes first."""

from __future__ import annotations

import pytest
from mock_engine import Bench

from ewe.config import Config
from ewe.types.sampling_params import SamplingParams


def order_of_ends(tenants: str, places: int) -> list[int]:
    """The numbers of the requests, one per letter, each of which names its tenant, in the order in which they end."""
    bench = Bench(Config.from_mapping({"scheduler": {"max_num_seqs": places}}))
    params = SamplingParams(max_tokens=6, temperature=0, ignore_eos=True)
    for number, tenant in enumerate(tenants):
        bench.add(str(number), "one two", params, tenant=tenant)
    return [int(name) for name, _ in bench.run()]


@pytest.mark.parametrize(
    ("tenants", "places", "order"),
    [
        ("aaaaa", 1, [0, 1, 2, 3, 4]),
        ("aaaab", 1, [0, 4, 1, 2, 3]),
        ("aaaabbc", 1, [0, 4, 6, 1, 5, 2, 3]),
        ("aaaaaab", 2, [0, 6, 1, 2, 3, 4, 5]),
    ],
)
def test_whose_tenant_has_the_fewest_comes_next(tenants: str, places: int, order: list[int]) -> None:
    assert order_of_ends(tenants, places) == order
