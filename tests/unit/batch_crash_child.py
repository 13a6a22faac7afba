"""A process that answers requests until it is killed: `python -m tests.unit.batch_crash_child REQUESTS RESULTS`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ewe.server.batch.dispatch import answer_requests
from ewe.server.batch.requests import BatchRequest, read_requests
from ewe.server.batch.result_log import Reply, ResultLog


async def echo(request: BatchRequest) -> Reply:
    """The request's prompt, a little later; who asked is told first."""
    print(request.custom_id, flush=True)
    await asyncio.sleep(0.001)
    return Reply(200, request.body, {})


def main(requests: Path, results: Path) -> None:
    """Answers what is left; a line `done NAME` follows when a result counts."""
    with ResultLog(results) as log:
        before = set(log.answered)

        def tell() -> None:
            for name in log.answered - before:
                print(f"done {name}", flush=True)
            before.update(log.answered)

        asyncio.run(answer_requests(read_requests(requests), echo, log, asyncio.Semaphore(8), tell))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
