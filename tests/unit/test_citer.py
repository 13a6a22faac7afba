"""Citations: much text takes turns, and an answer that ends while its documents are indexed waits for nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.server.answering.citer import Citer
from ewe.server.traffic.fair_queue import LARGE, WorkQueues
from ewe.types import Passage, VerificationRequest, VerificationResult

TEXT = "It rains. " * 20
SPANS = [(10 * place, 10 * place + 9) for place in range(20)]


class Rig:
    """A service whose verifiers say nothing, and a turn that counts its parts. others: whether they have answers."""

    def __init__(self, others: bool = False) -> None:
        self.parts, self.closed, self.others = 0, 0, others
        self.indexing, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()
        self.served = SimpleNamespace(verifiers=self)
        self.queues = WorkQueues(8)

    def in_parts(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.parts += 1
            yield item

    def size_of_parts(self, most: int) -> int:
        return 1 if self.others else most

    def against(self, documents: Sequence[Passage], in_parts: Any) -> Rig:
        assert list(in_parts("index")) == list("index")
        self.indexing.set()
        assert self.may_go_on.wait(60)
        return self

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [VerificationResult() for _ in requests]

    def close(self) -> None:
        self.closed += 1

    def citer(self, size: int) -> Citer:
        service: Any = self
        original = SimpleNamespace(prefill="")
        run: Any = SimpleNamespace(tenant="one", opened=[SimpleNamespace(request=SimpleNamespace(original=original))])
        return Citer(service, run, service, "", [Passage("a", "x" * size)])


@pytest.mark.parametrize(
    ("size", "others", "parts"), [(LARGE + 1, False, 5 + 3), (LARGE + 1, True, 5 + 20), (LARGE, True, 0)]
)
def test_index_and_checks_of_much_text_are_parts_of_the_requests_work(size: int, others: bool, parts: int) -> None:
    """Parts of eight sentences, and of one while others have answers, which a part holds up."""
    rig = Rig(others)
    assert asyncio.run(rig.citer(size).quotes(TEXT, SPANS)) == [()] * 20
    assert rig.parts == parts


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
