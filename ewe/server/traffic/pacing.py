"""While others have answers written, what is no answer takes a small part of the time of each tenant.

Python runs one thing at a time: a part of the engine's step, or the HTTP and the checks of somebody's requests. Answers
take turns in the engine; other requests, and bodies that take long to read, would come between all of its steps.
"""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from starlette.types import Scope

from ewe.server.http.error_responses import RefusedError
from ewe.server.traffic.fair_queue import LARGE, tenant_of

_T = TypeVar("_T")

ANSWER_PATHS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v2/chat"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_READ_BYTES_PER_S = 100e6  # also of a body that is refused: what has been sent has to be taken
_SHARE = 0.1  # of the time, for the other work of one tenant
_CREDIT_S = 0.25  # of work that waits for nothing
_LONGEST_REST_S = 1.0  # however long the work before took: who has much to check must come to an end, too
_RECENT_S = 1.0  # after its last answer a tenant is there still: it may be about to ask for the next
_FORGET_S = 5.0  # by then all credit is back


class _Tenant:
    """One tenant: requests and answers under way, when the last ended, and its other work, which is done in a line."""

    def __init__(self, now: float) -> None:
        self.inside, self.left = 0, now
        self.answers, self.answered = 0, -math.inf
        self.was_refused = False  # when it last asked for an answer: refusing costs time, too
        self.waiting, self.line, self.parts = 0, asyncio.Lock(), threading.Lock()
        self._credit, self._since = _CREDIT_S, now

    def rest_s(self, now: float) -> float:
        """How long it has to wait for its next work."""
        self._gain(now)
        return max(0.0, -self._credit / _SHARE)

    def spend(self, took: float, now: float) -> None:
        """Work took this time."""
        self._gain(now)
        self._credit = max(self._credit - took, -_SHARE * _LONGEST_REST_S)

    def _gain(self, now: float) -> None:
        self._credit, self._since = min(_CREDIT_S, self._credit + _SHARE * (now - self._since)), now


class Turn:
    """The time of one request's other work; is_answer: whether it has become an answer.

    began: since when its tenant's line is its own; None where it stands in none.
    """

    def __init__(self, pacing: "Pacing", tenant: _Tenant, began: float | None = None) -> None:
        self.is_answer = False
        self._pacing, self._tenant, self._began = pacing, tenant, began
        self._in_parts_s = 0.0

    @contextmanager
    def part(self) -> Iterator[None]:
        """Around a part of the work, in a thread; while others have answers written it waits for the parts before.

        What follows an answer has parts too, though the turn has ended.
        """
        pacing, tenant = self._pacing, self._tenant
        if not pacing.others_have_answers(tenant):
            yield
            return
        came = pacing.now()
        with tenant.parts:
            pacing.rest(tenant.rest_s(pacing.now()))
            begin = pacing.now()
            try:
                yield
            finally:
                now = pacing.now()
                tenant.spend(now - begin, now)
                self._in_parts_s += now - came

    def in_parts(self, items: Iterable[_T]) -> Iterator[_T]:
        """The items; to make each of them, and what is done with it, is a part. Not for use within a part."""
        remaining = iter(items)
        while True:
            with self.part():
                try:
                    item = next(remaining)
                except StopIteration:
                    return
                yield item

    def size_of_parts(self, most: int) -> int:
        """How many things to do in one part: an answer of others is held up by all of a part that it meets."""
        return 1 if self._pacing.others_have_answers(self._tenant) else most

    def end(self) -> None:
        """The work is done, or it is the engine's from now on; again does nothing."""
        began, self._began = self._began, None
        if began is not None:
            now = self._pacing.now()
            self._tenant.spend(max(0.0, now - began - self._in_parts_s), now)
            self._tenant.line.release()


class Pacing:
    """Lets in what is no answer: at once while no other has answers written, else in turn, a tenth of a tenant's time.

    most_waiting: requests of one tenant that may wait for their turn. now: seconds; sleep: waits for so many, as rest
    does in threads.
    """

    def __init__(
        self,
        most_waiting: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._most_waiting = most_waiting
        self.now, self._sleep, self.rest = now, sleep, rest
        self._tenants: dict[str, _Tenant] = {}

    @asynccontextmanager
    async def around(self, scope: Scope, length: str) -> AsyncIterator[None]:
        """Around one request, which waits for its turn if it takes any; length: the header of its body's.

        Raises RefusedError where too many of its tenant's requests wait.
        """
        if scope["method"] in _READING:
            yield
            return
        name = tenant_of(scope)
        tenant = self._tenants.setdefault(name, _Tenant(self.now()))
        tenant.inside += 1
        try:
            takes_turn = tenant.was_refused or _is_other_work(scope, length)
            turn = await self._turn(tenant, length) if takes_turn else Turn(self, tenant)
            scope["state"]["turn"] = turn
            tenant.answers += not takes_turn
            try:
                yield
            finally:
                turn.end()
                if not takes_turn:
                    tenant.answers -= 1
                    tenant.answered = self.now()
                if scope["path"] in ANSWER_PATHS:
                    tenant.was_refused = not turn.is_answer
        finally:
            tenant.inside -= 1
            tenant.left = self.now()
            self._forget()

    async def _turn(self, tenant: _Tenant, length: str) -> Turn:
        if not self.others_have_answers(tenant):
            return Turn(self, tenant)
        if tenant.waiting >= self._most_waiting:
            message = (
                f"{tenant.waiting} requests of this key wait for their turn (server.max_queued_per_key); "
                "try again when one of them is answered"
            )
            raise RefusedError(429, message, code="too_many")
        tenant.waiting += 1
        try:
            await tenant.line.acquire()
        finally:
            tenant.waiting -= 1
        try:
            await self._sleep(tenant.rest_s(self.now()))
        except BaseException:
            tenant.line.release()
            raise
        read_s = (int(length) if length.isdecimal() else 0) / _READ_BYTES_PER_S
        return Turn(self, tenant, self.now() - read_s)

    def others_have_answers(self, tenant: _Tenant) -> bool:
        """Whether another tenant has answers written, or had a moment ago; from any thread."""
        since = self.now() - _RECENT_S
        others = [one for one in list(self._tenants.values()) if one is not tenant]
        return any(one.answers or one.answered >= since for one in others)

    def _forget(self) -> None:
        now = self.now()
        gone = [name for name, one in self._tenants.items() if not one.inside and now - one.left > _FORGET_S]
        for name in gone:
            del self._tenants[name]


def turn_of(scope: Scope) -> Turn:
    """The turn of a request that is more than a look at something."""
    turn: Turn = scope["state"]["turn"]
    return turn


def end_turn(scope: Scope) -> None:
    """What a request has left to do is the engine's."""
    turn: Turn | None = scope["state"].get("turn")
    if turn is not None:
        turn.is_answer = True
        turn.end()


def _is_other_work(scope: Scope, length: str) -> bool:
    """Whether a request takes turns: all but answers to small bodies."""
    return scope["path"] not in ANSWER_PATHS or not length.isdecimal() or int(length) > LARGE
