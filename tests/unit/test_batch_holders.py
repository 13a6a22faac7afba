"""A key's batches take nothing from its other requests, whatever the batches ask for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from fastapi import Request

from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.thread_work import run_in_thread
from ewe.server.settings import ServerSettings
from ewe.server.traffic.admission import AdmissionControl
from ewe.server.traffic.fair_queue import FairQueue


def test_work_of_a_batch_and_of_its_key_count_apart() -> None:
    service = SimpleNamespace(admission=AdmissionControl(10, per_key=1), settings=ServerSettings())
    app = SimpleNamespace(state=SimpleNamespace(service=service))
    queue = FairQueue("vectors", 2)

    async def ask(in_batch: bool) -> str:
        async def receive() -> Any:
            await asyncio.Event().wait()

        scope = {"type": "http", "app": app, "state": {"key": "k", "in_batch": in_batch}}
        return await run_in_thread(Request(scope, receive), queue, lambda _: "done")

    async def check() -> None:
        service.admission.enter("k")
        assert await ask(in_batch=True) == "done"
        with pytest.raises(RefusedError, match="this key may have 1"):
            await ask(in_batch=False)

    asyncio.run(check())
    queue.close()
