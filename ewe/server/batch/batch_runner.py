"""The life of batches: checked, answered beside what others ask, and brought into files of results."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any

from starlette.types import ASGIApp

from ewe.server.batch.batch_calls import BatchCaller
from ewe.server.batch.batch_schemas import Batch, BatchErrors, BatchStatus, RequestCounts, StoredFile
from ewe.server.batch.batch_store import BatchStore, write_whole
from ewe.server.batch.dispatch import answer_requests
from ewe.server.batch.places import SharedPlaces
from ewe.server.batch.requests import BatchRequest, LineError, LineLimitError, LineLimits, check_requests, read_requests
from ewe.server.batch.result_log import ResultLog, unanswered_line
from ewe.server.engine_service import Service
from ewe.server.http.error_responses import RefusedError
from ewe.server.http.json_sizes import MOST_NUMBERS
from ewe.server.request_handling.json_bodies import MOST_VALUES
from ewe.server.traffic.fair_queue import FairQueue

MOST_REQUESTS = 50_000  # of one batch, as at OpenAI
_MOST_LINES = 4 * MOST_REQUESTS
_CHECKS = 2  # of files at once
_WHY_UNANSWERED = {
    "expired": ("batch_expired", "the completion window ended before this request was asked"),
    "cancelled": ("batch_cancelled", "the batch was cancelled before this request was asked"),
}
_log = logging.getLogger("ewe.server")


class BatchRunner:
    """Runs what the store holds; keys share `concurrency` places, each in its turn. now: unix seconds."""

    def __init__(
        self, app: ASGIApp, service: Service, store: BatchStore, concurrency: int, now: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.now = now
        self._app = app
        self._service = service
        self._places = SharedPlaces(concurrency)
        self._limits = LineLimits(_MOST_LINES, service.settings.max_body_bytes, MOST_NUMBERS, MOST_VALUES)
        self._checks = FairQueue("checks of batches", _CHECKS)
        self._finishing = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Goes on with the batches that a server before this one began."""
        for key, batch in self.store.batches.all():
            if not batch.has_ended:
                self.begin(key, batch)

    def begin(self, key: str, batch: Batch) -> None:
        """Has a batch run, on this event loop."""
        task = asyncio.create_task(self._live(key, batch.id))
        self._tasks[batch.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(batch.id))

    async def cancel(self, key: str, batch: Batch) -> Batch:
        """Asks no more of a batch; what is under way is answered. One that has not begun is cancelled at once."""
        if batch.status == "validating":
            if batch.id in self._tasks:
                self._tasks[batch.id].cancel()  # a check that waits for its turn is not begun
            return await self._set(key, batch, "cancelled")
        return await self._set(key, batch, "cancelling") if batch.status == "in_progress" else batch

    async def close(self) -> None:
        """Breaks off what is under way; the next server goes on with it."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._checks.close()
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
        check = partial(check_requests, path, batch.endpoint, MOST_REQUESTS, self._limits)
        result = await self._checks.submit(key, check)
        batch = self._batch(key, batch_id)
        if result.errors:
            await self._set(key, batch, "failed", errors=BatchErrors(data=result.errors))
        else:
            await self._set(key, batch, "in_progress", request_counts=RequestCounts(total=result.total))

    async def _run(self, key: str, batch_id: str) -> None:
        def goes_on() -> bool:
            batch = self._batch(key, batch_id)
            return batch.status == "in_progress" and batch.errors is None and self.now() < batch.expires_at

        def count() -> None:
            batch = self._batch(key, batch_id)
            counts = RequestCounts(total=batch.request_counts.total, completed=log.completed, failed=log.failed)
            self.store.batches.note(key, batch.model_copy(update={"request_counts": counts}))

        batch = self._batch(key, batch_id)
        log = await asyncio.to_thread(ResultLog, self.store.log(batch), partial(self._take, key, batch_id))
        self.store.count_unfinished(key, log.size)
        count()
        requests = takewhile(lambda _: goes_on(), self._requests(batch))
        caller = BatchCaller(self._app, self._service, key, goes_on=goes_on)
        try:
            with log:
                await answer_requests(requests, caller.answer, log, self._places.of(key), count)
        except LineLimitError as error:
            self._note_error(key, batch_id, error.error)
        await self._finish(key, batch_id, log)

    def _requests(self, batch: Batch) -> Iterator[BatchRequest]:
        return read_requests(self.store.content(batch.input_file_id), self._limits)

    def _take(self, key: str, batch_id: str, size: int) -> bool:
        """Counts a result of a batch if the key has room for it; else the batch ends."""
        most = self._service.settings.batch_bytes
        if self.store.used(key) + size > most:
            message = f"with more results this key would keep more than {most} bytes (server.batch_bytes)"
            self._note_error(key, batch_id, LineError(code="no_room", message=message))
            return False
        self.store.count_unfinished(key, size)
        return True

    def _note_error(self, key: str, batch_id: str, error: LineError) -> None:
        """A batch that is still to be answered ends with this error, and with what it has."""
        batch = self._batch(key, batch_id)
        if batch.status == "in_progress":
            self.store.batches.note(key, batch.model_copy(update={"errors": BatchErrors(data=[error])}))

    async def _finish(self, key: str, batch_id: str, log: ResultLog) -> None:
        """Brings the results into files; done again after a kill, it makes the same files."""
        batch = self._batch(key, batch_id)
        if batch.status == "cancelling":
            status: BatchStatus = "cancelled"
        else:
            is_whole = len(log.answered) == batch.request_counts.total
            status = "failed" if batch.errors else "completed" if is_whole else "expired"
            batch = await self._set(key, batch, "finalizing")
        async with self._finishing:  # each finds the room that those before it left
            room = self._service.settings.batch_bytes - self.store.used(key)
            lines = {
                "output_file_id": (line for line, is_good in log.lines() if is_good),
                "error_file_id": self._error_lines(batch, log, status, room),
            }
            written = {name: await asyncio.to_thread(self._write_results, batch, name, lines[name]) for name in lines}
            files = {name: file for name, file in written.items() if file.bytes}
            self.store.count_unfinished(key, -log.size)  # from now on they count as files
            for file in files.values():
                await self.store.files.keep(key, file)
        await self._set(key, batch, status, **{name: file.id for name, file in files.items()})
        self.store.log(batch).unlink()

    def _error_lines(self, batch: Batch, log: ResultLog, status: BatchStatus, room: int) -> Iterator[bytes]:
        """Errors, and the requests that a batch left, as far as there is room for them."""
        yield from (line for line, is_good in log.lines() if not is_good)
        if status not in _WHY_UNANSWERED:
            return
        with suppress(LineLimitError):  # the limits were higher when the batch was checked
            for request in self._requests(batch):
                if request.custom_id in log.answered:
                    continue
                line = unanswered_line(request.custom_id, *_WHY_UNANSWERED[status])
                room -= len(line)
                if room < 0:
                    return
                yield line

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
        assert batch is not None, "batches that have not ended are never deleted"
        return batch

    async def _set(self, key: str, batch: Batch, status: BatchStatus, **changes: Any) -> Batch:
        """Brings a batch to a status at once, and notes when; returns when that is on the disk."""
        times = {f"{status}_at": int(self.now())}
        changed = batch.model_copy(update={"status": status, **times, **changes})
        await self.store.batches.keep(key, changed)
        return changed
