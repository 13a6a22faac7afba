"""/v1/files and /v1/batches: files of requests come, are answered in the background, and go as files of results."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Form, Query, Request, UploadFile
from fastapi.responses import FileResponse
from starlette.types import Receive, Scope, Send

from ewe.server.batch.batch_runner import BatchRunner
from ewe.server.batch.batch_schemas import Batch, BatchCreation, DeletedFile, FileListing, Listing, Page, StoredFile
from ewe.server.batch.batch_store import blocks, new_id, page, write_whole
from ewe.server.engine_service import key_of, service_of
from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas.common import ERROR_RESPONSES

router = APIRouter(tags=["OpenAI"], responses=ERROR_RESPONSES, route_class=RequestRoute)

MAX_FILE_BYTES = 200 << 20  # as at OpenAI
_WINDOW_S = 24 * 3600
_MOST_UNFINISHED = 20  # batches of one key
_MOST_FILES = 10_000  # of one key
_MOST_LISTED = 1000  # files at once, however many are asked for: clients ask for the next page
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_CONTENT: dict[int | str, dict[str, Any]] = {200: {"content": _BYTES}}


@router.post("/v1/files")
async def create_file(
    request: Request, file: Annotated[UploadFile, File()], purpose: Annotated[Literal["batch"], Form()]
) -> StoredFile:
    """Keeps a file of requests in OpenAI's batch format."""
    runner, key = _runner_of(request), key_of(request)
    _check_space(request, runner, file.size or 0)
    if runner.store.files.count(key) >= _MOST_FILES:
        message = f"this key keeps {_MOST_FILES} files, the most that it may: delete some"
        raise RefusedError(400, message, param="file", code="too_many", may_retry=False)
    announced = file.size or 0
    runner.store.count_unfinished(key, announced)  # other uploads of this key have less room from now on
    try:
        return await _keep_file(runner, key, file, purpose)
    finally:
        runner.store.count_unfinished(key, -announced)


async def _keep_file(runner: BatchRunner, key: str, file: UploadFile, purpose: str) -> StoredFile:
    file_id = new_id("file-")
    size = await asyncio.to_thread(write_whole, runner.store.content(file_id), blocks(file.file))
    name = (file.filename or "")[:255]
    stored = StoredFile(id=file_id, bytes=size, created_at=int(runner.now()), filename=name, purpose=purpose)
    try:
        await runner.store.files.keep(key, stored)
    except OSError:
        runner.store.content(file_id).unlink()
        raise
    return stored


@router.get("/v1/files")
async def list_files(request: Request, listing: Annotated[FileListing, Query()]) -> Page[StoredFile]:
    """The key's files: of requests, and of results."""
    files = _runner_of(request).store.files.of_key(key_of(request))
    chosen = (file for file in files if listing.purpose in (None, file.purpose))
    return page(chosen, listing.after, min(listing.limit, _MOST_LISTED), newest_first=listing.order == "desc")


@router.get("/v1/files/{file_id}")
async def retrieve_file(file_id: str, request: Request) -> StoredFile:
    """One file's record."""
    return _file_of(request, file_id)


@router.get("/v1/files/{file_id}/content", responses=_CONTENT, response_class=FileResponse)
async def retrieve_content(file_id: str, request: Request) -> FileResponse:
    """One file's content."""
    path = _runner_of(request).store.content(_file_of(request, file_id).id)
    try:
        return _Content(path)
    except FileNotFoundError:
        raise _no_file(file_id, "file_id") from None


class _Content(FileResponse):
    """A file that may be deleted before it is sent or meanwhile: opened at once, it is sent whole."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        number = self._file.fileno()
        super().__init__(f"/dev/fd/{number}", media_type="application/octet-stream", stat_result=os.fstat(number))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        with self._file:
            await super().__call__(scope, receive, send)


@router.delete("/v1/files/{file_id}")
async def delete_file(file_id: str, request: Request) -> DeletedFile:
    """Deletes a file, for good."""
    store, file = _runner_of(request).store, _file_of(request, file_id)
    for batch in store.batches.of_key(key_of(request)):
        if batch.input_file_id == file.id and not batch.has_ended:
            raise RefusedError(400, f"the batch {batch.id} still needs this file: cancel it first", param="file_id")
    store.remove_file(file)
    return DeletedFile(id=file.id)


@router.post("/v1/batches")
async def create_batch(body: BatchCreation, request: Request) -> Batch:
    """Has the requests of a file answered in the background, within a day."""
    runner, key = _runner_of(request), key_of(request)
    _check_space(request, runner, 0)
    file = _file_of(request, body.input_file_id, "input_file_id")
    if sum(not batch.has_ended for batch in runner.store.batches.of_key(key)) >= _MOST_UNFINISHED:
        raise RefusedError(429, f"{_MOST_UNFINISHED} batches of this key are not finished", code="too_many")
    now = int(runner.now())
    batch = Batch(
        id=new_id("batch_"),
        endpoint=body.endpoint,
        input_file_id=file.id,
        created_at=now,
        expires_at=now + _WINDOW_S,
        metadata=body.metadata,
    )
    await runner.store.batches.keep(key, batch)
    runner.store.forget_old_batches(key)
    runner.begin(key, batch)
    return batch


@router.get("/v1/batches")
async def list_batches(request: Request, listing: Annotated[Listing, Query()]) -> Page[Batch]:
    """The key's batches, the newest first."""
    return page(_runner_of(request).store.batches.of_key(key_of(request)), listing.after, listing.limit)


@router.get("/v1/batches/{batch_id}")
async def retrieve_batch(batch_id: str, request: Request) -> Batch:
    """One batch, and how far it is."""
    batch = _runner_of(request).store.batches.find(key_of(request), batch_id)
    if batch is None:
        raise RefusedError(404, f"there is no batch {batch_id!r} of this key", param="batch_id", code="not_found")
    return batch


@router.post("/v1/batches/{batch_id}/cancel")
async def cancel_batch(batch_id: str, request: Request) -> Batch:
    """Ends a batch after the requests that are under way; what is answered can be fetched."""
    return await _runner_of(request).cancel(key_of(request), await retrieve_batch(batch_id, request))


def _runner_of(request: Request) -> BatchRunner:
    runner: BatchRunner | None = getattr(request.app.state, "batches", None)
    if runner is None:
        message = "this server keeps no batches: start it with server.batch_folder set to a folder for them"
        raise RefusedError(404, message, code="not_found")
    return runner


def _file_of(request: Request, file_id: str, param: str = "file_id") -> StoredFile:
    file = _runner_of(request).store.files.find(key_of(request), file_id)
    if file is None:
        raise _no_file(file_id, param)
    return file


def _no_file(file_id: str, param: str) -> RefusedError:
    return RefusedError(404, f"there is no file {file_id!r} of this key", param=param, code="not_found")


def _check_space(request: Request, runner: BatchRunner, size: int) -> None:
    most = service_of(request).settings.batch_bytes
    if runner.store.used(key_of(request)) + size > most:
        message = f"this key would keep more than {most} bytes (server.batch_bytes): delete files"
        raise RefusedError(400, message, param="file", may_retry=False)
