"""Users per key: no key reaches what another key's callers said, whatever names they choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.config import LongTermConfig
from ewe.longterm.records import Scope
from ewe.longterm.request_memories import scopes_of
from ewe.server.schemas.memory_use import MemoryUse
from ewe.server.traffic.tenants import Tenants
from ewe.types import MemoryOptions

KEYS = st.sampled_from(["0a1b", "0a1c", "ffff"])
NAMES = st.sampled_from(["", "ann", "bob", "0a1b/ann", "/ann", "0a1c/", "/", "ann/"]) | st.text(max_size=5)
PLACES = st.tuples(NAMES, NAMES)
KEEPS = LongTermConfig(path="somewhere")


def seen(tenants: Tenants, key: str, place: tuple[str, str]) -> set[Scope]:
    """What a request with this user and agent may read."""
    options = tenants.options(key, MemoryUse(user=place[0], agent=place[1]), KEEPS)
    assert options is not None
    return set(scopes_of(options))


@given(one=st.tuples(KEYS, PLACES), other=st.tuples(KEYS, PLACES))
def test_keys_have_only_the_shared_memories_in_common(
    one: tuple[str, tuple[str, str]], other: tuple[str, tuple[str, str]]
) -> None:
    tenants = Tenants(separate=True)
    if one[0] != other[0]:
        assert seen(tenants, *one) & seen(tenants, *other) == {Scope()}
        assert Scope(*tenants.owner(one[0], *one[1])) not in seen(tenants, *other)


@given(key=KEYS, one=PLACES, other=PLACES)
def test_users_of_a_key_are_kept_apart_and_known_by_their_names(
    key: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    for tenants in (Tenants(separate=True), Tenants(separate=False)):
        owner = tenants.owner(key, *one)
        assert tenants.names(key, *owner) == one
        assert (owner == tenants.owner(key, *other)) is (one == other)
        assert Scope(*owner) in seen(tenants, key, one)
    assert not Scope(*Tenants(separate=True).owner(key, *one)).shared


def test_a_request_without_memory_uses_those_of_the_settings() -> None:
    settings = LongTermConfig(path="somewhere", user="zoe")
    assert Tenants(separate=False).options("0a1b", None, settings) is None
    assert Tenants(separate=True).options("0a1b", None, settings) == MemoryOptions("0a1b/zoe")
    assert Tenants(separate=True).options("0a1b", None, LongTermConfig()) is None
    nobody = Tenants(separate=True).options("0a1b", None, KEEPS)
    assert nobody is not None
    assert scopes_of(nobody) == (Scope("0a1b/"), Scope())
