"""The log of a batch: one line of JSON for each answered request, in OpenAI's format for results."""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ewe.errors import EWEError, InvalidRequestError
from ewe.server.traffic.fair_queue import LARGE
from ewe.text.append_log import AppendLog

_OPENING = b'{"id": "batch_req_'


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint said; body: as JSON holds it. headers: with lower-case names. size: of the body, in bytes."""

    status: int
    body: Any
    headers: Mapping[str, str]
    size: int = 0


def result_line(custom_id: str, reply: Reply) -> bytes:
    """The result of a request that was answered, be it with an error."""
    response = {"status_code": reply.status, "request_id": reply.headers.get("x-request-id", ""), "body": reply.body}
    return _line(custom_id, response, None)


def unanswered_line(custom_id: str, code: str, message: str) -> bytes:
    """The result of a request that was never asked."""
    return _line(custom_id, None, {"code": code, "message": message})


def _line(custom_id: str, response: Mapping[str, Any] | None, error: Mapping[str, str] | None) -> bytes:
    head = {"id": f"batch_req_{secrets.token_hex(16)}", "custom_id": custom_id}
    return json.dumps({**head, "response": response, "error": error}).encode() + b"\n"


class ResultLog:
    """Results in the order in which they came, each on the disk before it counts as answered.

    Making one reads what is there, and raises InvalidRequestError for a file of something else; a line that a killed
    run left without its end does not count. Entering it cuts that line off; from then on results can be added.
    take: told the bytes of each result; says whether there is room for them, else the result is not kept.
    """

    def __init__(self, path: Path, take: Callable[[int], bool] = lambda size: True) -> None:
        self.path = path
        self.answered: set[str] = set()
        self.failed = 0
        self.size = 0  # bytes of results
        self._take = take
        self._read()
        self._log: AppendLog | None = None
        self._waiting: deque[bytes] = deque()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="ewe-batch-log")

    @property
    def completed(self) -> int:
        """Requests that were answered with status 200."""
        return len(self.answered) - self.failed

    def lines(self) -> Iterator[tuple[bytes, bool]]:
        """Every whole line, and whether its request was answered with status 200."""
        if self.path.exists():
            with self.path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield line, _status(line)[1]

    def __enter__(self) -> Self:
        self._log = AppendLog(self.path, self.size)
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.shutdown()  # a line that is being written is written to its end
        if self._log is not None:
            self._log.close()

    async def add(self, custom_id: str, reply: Reply) -> None:
        """Returns when the result is on the disk; results that come together are brought there together.

        One that there is no room for is not kept. Raises EWEError where the disk takes no more, and from then on.
        """
        if reply.size < LARGE:
            line = result_line(custom_id, reply)
        else:
            line = await asyncio.to_thread(result_line, custom_id, reply)
        if not self._take(len(line)):
            return
        self.size += len(line)
        self._waiting.append(line)
        await asyncio.get_running_loop().run_in_executor(self._disk, self._write)
        self.answered.add(custom_id)
        self.failed += reply.status != 200

    def _write(self) -> None:
        """Writes what waits, in the one thread that does."""
        if self._log is None or self._log.is_closed:
            raise EWEError(f"{self.path} takes no more: an earlier result could not be written")
        content = b"".join(self._waiting.popleft() for _ in range(len(self._waiting)))
        if not content:
            return  # written with an earlier one
        try:
            self._log.append(content)
        except OSError as error:
            raise EWEError(f"cannot write {self.path}: {error.strerror}; what it holds is kept") from error

    def _read(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_file():  # a device may have no end
            raise InvalidRequestError(f"{self.path} is no file; choose another --output")
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line[: len(_OPENING)] != _OPENING[: len(line)]:
                    raise self._foreign(number)
                if not line.endswith(b"\n"):
                    return
                self._count(number, line)

    def _count(self, number: int, line: bytes) -> None:
        try:
            custom_id, has_succeeded = _status(line)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._foreign(number) from error
        if custom_id in self.answered:
            raise self._foreign(number)
        self.answered.add(custom_id)
        self.failed += not has_succeeded
        self.size += len(line)

    def _foreign(self, number: int) -> InvalidRequestError:
        return InvalidRequestError(f"{self.path}:{number} is no result of a batch; choose another --output")


def _status(line: bytes) -> tuple[str, bool]:
    """The name of a line's request, and whether it was answered with status 200."""
    result = json.loads(line)
    return str(result["custom_id"]), (result["response"] or {}).get("status_code") == 200
