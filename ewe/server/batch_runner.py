"""The life of batches: checked, answered beside what others ask, and brought into files of results."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from starlette.types import ASGIApp

from ewe.server.batch.dispatch import answer_requests
from ewe.server.batch.requests import check_requests, read_requests
from ewe.server.batch.result_log import ResultLog, unanswered_line
from ewe.server.batch_calls import BatchCaller
from ewe.server.batch_store import BatchStore, write_whole
from ewe.server.engine_service import Service
from ewe.server.error_responses import RefusedError
from ewe.server.schemas.batch_schemas import Batch, BatchErrors, BatchStatus, RequestCounts, StoredFile

MOST_REQUESTS = 50_000  # of one batch, as at OpenAI
_WHY_UNANSWERED = {
    "expired": ("batch_expired", "the completion window ended before this request was asked"),
    "cancelled": ("batch_cancelled", "the batch was cancelled before this request was asked"),
}
_log = logging.getLogger("ewe.server")


class BatchRunner:
    """Runs what the store holds; all batches share `concurrency` places, each in its turn. now: unix seconds."""

    def __init__(
        self, app: ASGIApp, service: Service, store: BatchStore, concurrency: int, now: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.now = now
        self._app = app
        self._service = service
        self._places = asyncio.Semaphore(concurrency)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Goes on with the batches that a server before this one began."""
        for key, batch in self.store.batches.all():
            if not batch.has_ended:
                self.begin(key, batch)

    def begin(self, key: str, batch: Batch) -> None:
        """Has a batch run, on this event loop."""
        task = asyncio.create_task(self._live(key, batch.id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self, key: str, batch: Batch) -> Batch:
        """Asks no more of a batch; what is under way is answered. One that has not begun is cancelled at once."""
        if batch.status == "validating":
            return self._set(key, batch, "cancelled")
        return self._set(key, batch, "cancelling") if batch.status == "in_progress" else batch

    async def close(self) -> None:
        """Breaks off what is under way; the next server goes on with it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.store.close()

    async def _live(self, key: str, batch_id: str) -> None:
        try:
            if self._batch(key, batch_id).status == "validating":
                await self._check(key, batch_id)
            if not self._batch(key, batch_id).has_ended:
                await self._run(key, batch_id)
        except RefusedError as error:
            _log.warning("a batch waits for the next start", extra={"fields": {"batch": batch_id, "why": str(error)}})
        except Exception:
            _log.exception("a batch stands still until the next start")

    async def _check(self, key: str, batch_id: str) -> None:
        batch = self._batch(key, batch_id)
        path = self.store.content(batch.input_file_id)
        found = await asyncio.to_thread(check_requests, path, batch.endpoint, MOST_REQUESTS)
        batch = self._batch(key, batch_id)
        if batch.has_ended:
            return
        if found.errors:
            self._set(key, batch, "failed", errors=BatchErrors(data=found.errors))
        else:
            self._set(key, batch, "in_progress", request_counts=RequestCounts(total=found.total))

    async def _run(self, key: str, batch_id: str) -> None:
        def goes_on() -> bool:
            batch = self._batch(key, batch_id)
            return batch.status == "in_progress" and self.now() < batch.expires_at

        def count() -> None:
            batch = self._batch(key, batch_id)
            counts = RequestCounts(total=batch.request_counts.total, completed=log.completed, failed=log.failed)
            self.store.batches.put(key, batch.model_copy(update={"request_counts": counts}), to_disk=False)

        batch = self._batch(key, batch_id)
        log = await asyncio.to_thread(ResultLog, self.store.log(batch))
        count()
        requests = read_requests(self.store.content(batch.input_file_id))
        caller = BatchCaller(self._app, self._service, key, goes_on=goes_on)
        with log:
            await answer_requests(takewhile(lambda _: goes_on(), requests), caller.answer, log, self._places, count)
        await self._finish(key, batch_id, log)

    async def _finish(self, key: str, batch_id: str, log: ResultLog) -> None:
        """Brings the results into files; done again after a kill, it makes the same files."""
        batch = self._batch(key, batch_id)
        if batch.status == "cancelling":
            status: BatchStatus = "cancelled"
        else:
            status = "completed" if len(log.answered) == batch.request_counts.total else "expired"
            batch = self._set(key, batch, "finalizing")
        files: dict[str, str] = {}
        for name, lines in (
            ("output_file_id", (line for line, is_good in log.lines() if is_good)),
            ("error_file_id", self._error_lines(batch, log, status)),
        ):
            file = await asyncio.to_thread(self._write_results, batch, name, lines)
            if file.bytes:
                self.store.files.put(key, file)
                files[name] = file.id
        self._set(key, batch, status, **files)
        self.store.log(batch).unlink()

    def _error_lines(self, batch: Batch, log: ResultLog, status: BatchStatus) -> Iterator[bytes]:
        yield from (line for line, is_good in log.lines() if not is_good)
        if status != "completed":
            for request in read_requests(self.store.content(batch.input_file_id)):
                if request.custom_id not in log.answered:
                    yield unanswered_line(request.custom_id, *_WHY_UNANSWERED[status])

    def _write_results(self, batch: Batch, name: str, lines: Iterator[bytes]) -> StoredFile:
        kind = name.removesuffix("_file_id")
        file_id = f"file-{batch.id.removeprefix('batch_')}{'0' if kind == 'output' else '1'}"
        size = write_whole(self.store.content(file_id), lines)
        return StoredFile(
            id=file_id,
            bytes=size,
            created_at=int(self.now()),
            filename=f"{batch.id}_{kind}.jsonl",
            purpose="batch_output",
        )

    def _batch(self, key: str, batch_id: str) -> Batch:
        batch = self.store.batches.find(key, batch_id)
        assert batch is not None, "batches are never deleted"
        return batch

    def _set(self, key: str, batch: Batch, status: BatchStatus, **changes: Any) -> Batch:
        """Brings a batch to a status, and notes when."""
        times = {f"{status}_at": int(self.now())}
        changed = batch.model_copy(update={"status": status, **times, **changes})
        self.store.batches.put(key, changed)
        return changed
