"""Citations: much text takes turns, and an answer that ends while its documents are indexed waits for nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.server.citer import Citer
from ewe.server.fair_queue import LARGE, WorkQueues
from ewe.types import Passage, VerificationRequest, VerificationResult

TEXT = "It rains. " * 20
SPANS = [(10 * place, 10 * place + 9) for place in range(20)]


class Rig:
    """A service whose verifiers say nothing, and a turn that counts its parts."""

    def __init__(self) -> None:
        self.parts, self.closed = 0, 0
        self.indexing, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()
        self.served = SimpleNamespace(verifiers=self)
        self.queues = WorkQueues(8)

    @contextmanager
    def part(self) -> Iterator[None]:
        self.parts += 1
        yield

    def against(self, documents: Sequence[Passage]) -> Rig:
        self.indexing.set()
        assert self.may_go_on.wait(60)
        return self

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [VerificationResult() for _ in requests]

    def close(self) -> None:
        self.closed += 1

    def citer(self, size: int) -> Citer:
        service: Any = self
        run: Any = SimpleNamespace(tenant="one")
        return Citer(service, run, service, "", [Passage("a", "x" * size)])


@pytest.mark.parametrize(("size", "parts"), [(LARGE + 1, 3), (LARGE, 0)])
def test_checks_against_much_text_are_parts_of_the_requests_work(size: int, parts: int) -> None:
    rig = Rig()
    assert asyncio.run(rig.citer(size).quotes(TEXT, SPANS)) == [()] * 20
    assert rig.parts == parts  # of eight sentences each


def test_an_answer_that_ends_while_its_documents_are_indexed_waits_for_nothing() -> None:
    rig = Rig()
    rig.may_go_on.clear()
    citer = rig.citer(1)

    async def end_early() -> list[Any]:
        asked = asyncio.ensure_future(citer.quotes(TEXT, SPANS))
        await asyncio.to_thread(rig.indexing.wait, 60)
        citer.close()
        rig.may_go_on.set()
        return await asked

    assert asyncio.run(end_early()) == [()] * 20
    assert rig.closed == 1
