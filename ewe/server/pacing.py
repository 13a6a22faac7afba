"""While others have answers written, what is no answer takes a small part of the time of each tenant.

Python runs one thing at a time: a part of the engine's step, or the HTTP and the checks of somebody's requests. Answers
take turns in the engine; other requests, and bodies that take long to read, would come between all of its steps.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.types import Scope

from ewe.server.error_responses import RefusedError
from ewe.server.fair_queue import tenant_of

ANSWER_PATHS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v2/chat"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_LARGE = 1 << 16  # bytes of a body: to read and parse more is work of its own
_READ_BYTES_PER_S = 100e6  # also of a body that is refused: what has been sent has to be taken
_SHARE = 0.1  # of the time, for the other work of one tenant
_CREDIT_S = 0.25  # of work that waits for nothing
_LONGEST_REST_S = 1.0  # however long the work before took: who has much to check must come to an end, too
_RECENT_S = 1.0  # after its last answer a tenant is there still: it may be about to ask for the next
_FORGET_S = 5.0  # by then all credit is back


class Turn:
    """The time of one request's other work; is_answer: whether it has become an answer."""

    def __init__(self, on_end: Callable[[], None] | None = None) -> None:
        self.is_answer = False
        self._on_end = on_end

    def end(self) -> None:
        """The work is done, or it is the engine's from now on; again does nothing."""
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()


class _Tenant:
    """One tenant: requests and answers under way, when the last ended, and its other work, which is done in a line."""

    def __init__(self, now: float) -> None:
        self.inside, self.left = 0, now
        self.answers, self.answered = 0, -math.inf
        self.was_refused = False  # when it last asked for an answer: refusing costs time, too
        self.waiting, self.line = 0, asyncio.Lock()
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


class Pacing:
    """Lets in what is no answer: at once while no other has answers written, else in turn, a tenth of a tenant's time.

    most_waiting: requests of one tenant that may wait for their turn. now: seconds; sleep: waits for so many.
    """

    def __init__(
        self,
        most_waiting: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._most_waiting = most_waiting
        self._now, self._sleep = now, sleep
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
        tenant = self._tenants.setdefault(name, _Tenant(self._now()))
        tenant.inside += 1
        try:
            takes_turn = tenant.was_refused or _is_other_work(scope, length)
            turn = await self._turn(tenant, length) if takes_turn else Turn()
            scope["state"]["turn"] = turn
            tenant.answers += not takes_turn
            try:
                yield
            finally:
                turn.end()
                if not takes_turn:
                    tenant.answers -= 1
                    tenant.answered = self._now()
                if scope["path"] in ANSWER_PATHS:
                    tenant.was_refused = not turn.is_answer
        finally:
            tenant.inside -= 1
            tenant.left = self._now()
            self._forget()

    async def _turn(self, tenant: _Tenant, length: str) -> Turn:
        if not self._others_have_answers(tenant):
            return Turn()
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
            await self._sleep(tenant.rest_s(self._now()))
        except BaseException:
            tenant.line.release()
            raise
        begin, read_s = self._now(), (int(length) if length.isdecimal() else 0) / _READ_BYTES_PER_S

        def end() -> None:
            now = self._now()
            tenant.spend(now - begin + read_s, now)
            tenant.line.release()

        return Turn(end)

    def _others_have_answers(self, tenant: _Tenant) -> bool:
        since = self._now() - _RECENT_S
        return any(one.answers or one.answered >= since for one in self._tenants.values() if one is not tenant)

    def _forget(self) -> None:
        now = self._now()
        gone = [name for name, one in self._tenants.items() if not one.inside and now - one.left > _FORGET_S]
        for name in gone:
            del self._tenants[name]


def end_turn(scope: Scope) -> None:
    """What a request has left to do is the engine's."""
    turn: Turn | None = scope["state"].get("turn")
    if turn is not None:
        turn.is_answer = True
        turn.end()


def _is_other_work(scope: Scope, length: str) -> bool:
    """Whether a request takes turns: all but answers to small bodies."""
    return scope["path"] not in ANSWER_PATHS or not length.isdecimal() or int(length) > _LARGE
