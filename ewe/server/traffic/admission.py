"""What is let in: a bounded number of answers under way, prompts and answers of a bounded length."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, abc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ewe.errors import PromptTooLongError
from ewe.server.http.error_responses import RefusedError
from ewe.types import Passage

if TYPE_CHECKING:
    from ewe.server.engine_client.served_engine import OpenedRequest


class AdmissionControl:
    """Counts answers and other work under way; capacity: answers at once, per_key: both, of one key (None: no limit).

    places: how many answers are written at once; the others wait. is_shared: whether there are several keys; then each
    waits with no more answers than it leaves free, so that whoever comes new finds room. Other work takes no answer's
    place: its queues have bounds of their own.
    """

    def __init__(self, capacity: int, per_key: int | None = None, places: int = 0, is_shared: bool = False) -> None:
        self.capacity = capacity
        self._per_key = per_key
        self._places = places
        self._is_shared = is_shared
        self._answers: Counter[str] = Counter()
        self._work: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self.is_draining = False

    @property
    def num_inside(self) -> int:
        """Answers and other work under way."""
        return self._answers.total() + self._work.total()

    @property
    def by_key(self) -> dict[str, int]:
        """Answers under way of each key that has any; a key's batches count apart."""
        return dict(self._answers)

    @property
    def has_free_place(self) -> bool:
        """Whether an answer would be written at once."""
        return self._answers.total() < self._places and not self.is_draining

    def enter(self, key: str, count: int = 1, *, may_wait: bool = True) -> None:
        """Takes in `count` answers of a key; raises RefusedError where there is no room for all of them.

        may_wait: whether they are also let in where they have to wait for others.
        """
        self._check_open()
        if count > self.capacity:
            raise RefusedError(400, f"{count} answers in one request; this server takes {self.capacity} at once")
        self._check_key(key, count)
        most = self.capacity if may_wait else max(self._places, count)
        if self._answers.total() + count > most:
            raise RefusedError(429, "the queue is full; try again in a moment", code="queue_full")
        if self._is_shared and may_wait:
            self._check_share(key, count)
        self._answers[key] += count
        self._empty.clear()

    def leave(self, key: str, count: int = 1) -> None:
        """Lets `count` answers of a key go."""
        self._let_go(self._answers, key, count)

    @contextmanager
    def work(self, key: str) -> Iterator[None]:
        """Counts work of a key that is no answer, as long as it lasts; raises RefusedError where it may not begin."""
        self._check_open()
        self._check_key(key, 1)
        self._work[key] += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._let_go(self._work, key, 1)

    async def wait_until_empty(self, timeout_s: float) -> bool:
        """Whether nothing was under way any more before the time was over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        return self._empty.is_set()

    def _check_open(self) -> None:
        if self.is_draining:
            raise RefusedError(503, "the server is shutting down", code="shutting_down")

    def _check_key(self, key: str, count: int) -> None:
        if self._per_key is not None and self._answers[key] + self._work[key] + count > self._per_key:
            raise RefusedError(
                429,
                f"this key may have {self._per_key} answers and other requests under way; try again when one has ended",
                code="too_many",
            )

    def _check_share(self, key: str, count: int) -> None:
        """Raises RefusedError for answers that would have to wait and leave other keys too little room.

        A key's share of the places is not waited for: tenants take turns there.
        """
        total, own = self._answers.total(), self._answers[key] + count
        waiting = own - self._places // len(self._answers.keys() | {key})
        if total + count > self._places and waiting > self.capacity - total:
            message = "this key's answers fill their part of the queue; try again when one of them has ended"
            raise RefusedError(429, message, code="queue_full")

    def _let_go(self, counter: Counter[str], key: str, count: int) -> None:
        counter[key] -= count
        if not counter[key]:
            del counter[key]
        if not self._answers and not self._work:
            self._empty.set()


_NO_LIMIT = (1 << 31) - 1  # tokens; the engine ends an answer where the context does


def tokens_to_ask(requested: int | None, default: int | None, most: int | None, field: str) -> int:
    """The max_tokens of a request for the engine; default, most: None for all that the context leaves.

    Raises RefusedError, which names the request's field, if more is asked for than the server grants.
    """
    most = most or _NO_LIMIT
    if requested is not None and requested > most:
        raise RefusedError(400, f"{field}: at most {most} here (server.max_tokens), got {requested}", param=field)
    return requested or min(default or most, most)


_BYTES_PER_TOKEN = 16  # more than any text has that is not made to be short in tokens
_LEAST_PROMPT_BYTES = 1 << 16


MOST_DOCUMENT_BYTES = 1 << 19
"""Of a request together; answers show them, and each is looked through for that."""


def most_prompt_bytes(most: int | None, max_model_len: int) -> int:
    """How much text prompts may be before they are tokenised; most: as it is set."""
    return most or max(_LEAST_PROMPT_BYTES, _BYTES_PER_TOKEN * max_model_len)


def check_prompt_texts(texts: Iterable[str], most: int | None, max_model_len: int, field: str) -> None:
    """Raises RefusedError for texts that are so long that even to tokenise them takes long; most: bytes."""
    check_texts(texts, most_prompt_bytes(most, max_model_len), field, " (server.max_prompt_bytes)")


def check_documents(documents: abc.Sequence[Passage]) -> None:
    """Raises RefusedError for documents with more text together, in whatever field, than is looked through at once."""
    names = ("text", "title", "source", "url", "date")
    texts = [getattr(document, name) for document in documents for name in names]
    metadata = [json.dumps(document.metadata, ensure_ascii=False) for document in documents if document.metadata]
    check_texts((*texts, *metadata), MOST_DOCUMENT_BYTES, "documents")


def check_texts(texts: Iterable[str], most: int, field: str, setting: str = "") -> None:
    """Raises RefusedError for texts of more bytes together; setting: what says how many."""
    size = sum(len(text.encode(errors="replace")) for text in texts)  # what is no Unicode is refused where it is used
    if size > most:
        message = f"{field}: {size} bytes of text; this server takes {most}{setting}"
        raise RefusedError(413, message, param=field, code="context_length_exceeded")


def check_prompts(opened: abc.Sequence[OpenedRequest], most: int | None) -> None:
    """Raises PromptTooLongError for a prompt of more tokens than the server takes."""
    longest = max(one.request.num_prompt_tokens for one in opened)
    if most is not None and longest > most:
        raise PromptTooLongError(
            f"the prompt has {longest} tokens; this server takes {most} (server.max_prompt_tokens)"
        )


def check_room(opened: abc.Sequence[OpenedRequest], requested: int, field: str, max_model_len: int) -> None:
    """Raises RefusedError if a prompt leaves no room for so many tokens, which the engine would cut silently."""
    request = min((one.request for one in opened), key=lambda item: item.max_tokens)
    if requested <= request.max_tokens:
        return
    prompt, kept = request.num_prompt_tokens, request.start_position - len(request.prefix_ids)
    units = f" less the {kept} of a memory unit (memory.unit_tokens)" if kept else ""
    is_pool = request.max_tokens < max_model_len - kept - prompt
    pool = ", and the KV pool holds no more (cache.num_blocks, cache.memory_gib)" if is_pool else ""
    message = (
        f"{field}: the prompt's {prompt} tokens and {requested} more are over the model's {max_model_len} "
        f"(model.max_model_len){units}{pool}: ask for at most {request.max_tokens}, or leave it out"
    )
    raise RefusedError(400, message, param=field, code="context_length_exceeded")
