"""How many bytes bodies of requests may have: each of them, and those of one tenant together."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from ewe.server.http.error_responses import RefusedError

_FULL_TENANTS = 4  # as many may hold all that each may: a router takes made-up keys for tenants, too


class BodyBudget:
    """Bytes of the bodies of requests under way: most of one tenant, and of all together those of four full ones."""

    def __init__(self, most: int) -> None:
        self._most, self._together = most, _FULL_TENANTS * most
        self._held: Counter[str] = Counter()

    @contextmanager
    def share(self, tenant: str) -> Iterator[Callable[[int], None]]:
        """What counts the bytes of one request, until it ends; it raises HTTPException where there are too many."""
        held = 0

        def take(size: int) -> None:
            nonlocal held
            if self._held[tenant] + size > self._most:
                raise HTTPException(429, f"requests of this key have {self._most} bytes under way; try again later")
            if self._held.total() + size > self._together:
                raise HTTPException(503, f"all requests have {self._together} bytes under way; try again later")
            held += size
            self._held[tenant] += size

        try:
            yield take
        finally:
            self._held[tenant] -= held
            if not self._held[tenant]:
                del self._held[tenant]


def limited(receive: Receive, most: int, take: Callable[[int], None]) -> Receive:
    """`receive`, refusing to read on where a body grows too large, or `take` refuses its bytes."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        size = len(message.get("body", b""))
        seen += size
        if seen > most:
            # FastAPI, which is reading the body, takes no other error for an answer.
            raise HTTPException(413, str(too_large(most)))
        take(size)
        return message

    return receive_limited


def too_large(most: int) -> RefusedError:
    """What refuses a body of more bytes."""
    return RefusedError(413, f"the body is larger than {most} bytes", code="body_too_large")
