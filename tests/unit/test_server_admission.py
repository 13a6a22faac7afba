"""Admission control: never more inside than there is room for, whoever comes and goes."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import cast

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ewe.config import Config
from ewe.server.engine_client.served_engine import ServedEngine
from ewe.server.engine_service import Service
from ewe.server.http.error_responses import RefusedError
from ewe.server.settings import ServerSettings
from ewe.server.traffic.admission import AdmissionControl

CAPACITY, PER_KEY, PLACES = 6, 4, 3
KEYS = st.sampled_from(["a", "b", "c"])


class GateMachine(RuleBasedStateMachine):
    """Compared with a list of who is inside."""

    def __init__(self) -> None:
        super().__init__()
        self.admission = AdmissionControl(CAPACITY, PER_KEY, PLACES)
        self.loop = asyncio.Runner()  # it belongs to one loop
        self.inside: list[tuple[str, int]] = []

    @rule(key=KEYS, count=st.integers(1, 7), may_wait=st.booleans())
    def enter(self, key: str, count: int, may_wait: bool) -> None:
        of_key = sum(number for name, number in self.inside if name == key)
        total = sum(number for _, number in self.inside)
        if self.admission.is_draining:
            expected = 503
        elif count > CAPACITY:
            expected = 400
        elif of_key + count > PER_KEY:
            expected = 429
        else:
            has_room = total + count <= (CAPACITY if may_wait else PLACES) or (not may_wait and not total)
            expected = 0 if has_room else 429
        if expected:
            with pytest.raises(RefusedError) as caught:
                self.admission.enter(key, count, may_wait=may_wait)
            assert caught.value.status == expected
            assert ("retry-after" in caught.value.headers) == (expected in (429, 503))
        else:
            self.admission.enter(key, count, may_wait=may_wait)
            self.inside.append((key, count))

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        key, count = self.inside.pop(data.draw(st.integers(0, len(self.inside) - 1)))
        self.admission.leave(key, count)

    @rule()
    def drain(self) -> None:
        self.admission.is_draining = True

    @invariant()
    def counts_agree(self) -> None:
        assert self.admission.num_inside == sum(number for _, number in self.inside) <= CAPACITY
        assert self.admission.has_free_place == (self.admission.num_inside < PLACES and not self.admission.is_draining)
        assert self.loop.run(self.admission.wait_until_empty(0.0001)) == (not self.inside)

    def teardown(self) -> None:
        self.loop.close()


TestGate = GateMachine.TestCase
TestGate.settings = examples(15, 40, stateful_step_count=25)


def test_whoever_waits_is_told_when_the_last_has_left() -> None:
    async def wait() -> tuple[bool, bool]:
        admission = AdmissionControl(3)
        admission.enter("a", 2)
        too_early = await admission.wait_until_empty(0.001)
        waiting = asyncio.ensure_future(admission.wait_until_empty(60))
        await asyncio.sleep(0)
        admission.leave("a", 2)
        return too_early, await waiting

    assert asyncio.run(wait()) == (False, True)


def test_metrics_tell_what_each_key_has_under_way() -> None:
    from ewe.server.observability.metrics import Metrics

    admission = AdmissionControl(capacity=8)
    metrics = Metrics(lambda: None, tenants=lambda: admission.by_key)
    admission.enter("one", 2)
    admission.enter("two (batches)")
    told = [line for line in metrics.text().decode().splitlines() if line.startswith("ewe:tenant_requests")]
    assert told == ['ewe:tenant_requests{tenant="one"} 2.0', 'ewe:tenant_requests{tenant="two (batches)"} 1.0']
    admission.leave("one", 2)
    assert 'tenant="one"' not in metrics.text().decode()


def test_other_work_takes_no_answers_place_but_counts_for_its_key_and_for_who_waits() -> None:
    async def run() -> None:
        admission = AdmissionControl(1, per_key=2, places=1)
        with admission.work("a"), admission.work("a"):
            assert (admission.num_inside, admission.has_free_place) == (2, True)
            with pytest.raises(RefusedError, match="may have 2"):
                admission.enter("a")
            admission.enter("b")
            admission.leave("b")
            assert not await admission.wait_until_empty(0)
        assert await admission.wait_until_empty(0)
        admission.is_draining = True
        with pytest.raises(RefusedError, match="shutting down"), admission.work("a"):
            pass

    asyncio.run(run())


def let_in(admission: AdmissionControl, key: str, most: int = 100) -> int:
    """How many answers of a key are let in, one by one, until one is refused."""
    for number in range(most):
        try:
            admission.enter(key)
        except RefusedError as refused:
            return number if (refused.status, refused.code) == (429, "queue_full") else -1
    return most


def test_one_of_several_keys_leaves_room_to_wait_for_the_others() -> None:
    admission = AdmissionControl(4 + 16, places=4, is_shared=True)
    assert let_in(admission, "flood") == 4 + 8
    assert [let_in(admission, key) for key in "abc"] == [5, 2, 1]
    admission = AdmissionControl(4 + 16, places=4)
    assert let_in(admission, "the only one") == 20


def test_one_of_several_keys_finds_every_place_that_is_free_and_may_wait_in_the_smallest_queue() -> None:
    assert let_in(AdmissionControl(4, places=4, is_shared=True), "a") == 4
    assert let_in(AdmissionControl(5, places=4, is_shared=True), "a") == 5
    admission = AdmissionControl(8, places=4, is_shared=True)
    admission.enter("a", 3, may_wait=False)
    admission.enter("b", may_wait=False)


def test_a_signal_that_comes_while_the_model_is_loaded_counts() -> None:
    service = Service(None, ServerSettings())
    service.admission.is_draining = True
    engine = SimpleNamespace(prompts=SimpleNamespace(config=Config()), new_verifiers=lambda: None)
    service.open(cast(ServedEngine, engine))
    assert service.admission.is_draining


@pytest.mark.parametrize(("key", "tenant"), [(None, ""), ("secret", "ann")])
def test_metrics_tell_what_waits_for_a_thread_but_no_addresses(key: str | None, tenant: str) -> None:
    service = Service(None, ServerSettings.from_mapping({"api_key": key}))

    async def run() -> str:
        works = [service.queues.tokens.submit("ann", may_end.wait) for _ in range(5)]
        told = service.metrics.text().decode()
        may_end.set()
        await asyncio.gather(*works)
        return told

    may_end = threading.Event()
    assert f'ewe:tenant_queued{{queue="tokens",tenant="{tenant}"}} 3.0' in asyncio.run(run())
    assert "ewe:tenant_queued{" not in service.metrics.text().decode()
    service.close()
