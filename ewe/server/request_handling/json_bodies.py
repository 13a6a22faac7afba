"""Bodies of requests: how much structure JSON may have, before and after it is parsed, and which forms are read."""

import json
from functools import partial
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ewe.server.engine_service import service_of
from ewe.server.http.json_sizes import MOST_NUMBERS, num_values
from ewe.server.traffic.body_limits import too_large
from ewe.server.traffic.fair_queue import LARGE, tenant_of
from ewe.text.json_values import members

MOST_VALUES = 20_000
"""Values of one body that are no tokens."""

MOST_MEMBERS = 4096
"""Of one object, or of one list of others than tokens."""

MOST_LEVELS = 800
"""Of objects and lists in each other: fewer than stop Python. What is worked on has less, by checks of its own."""

_CHARSETS = ("utf-8", "utf8")


class BoundedRequest(Request):
    """A request whose JSON is bounded in structure, since looking through values takes longer than reading text."""

    async def body(self) -> bytes:
        """The whole body; raises HTTPException with status 413 for one that is too large.

        Where its length is given, it is refused before it is read.
        """
        most, length = service_of(self).most_body_bytes(self.scope["path"]), self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise HTTPException(413, str(too_large(most)))
        body = await super().body()
        if len(body) > most:
            raise HTTPException(413, str(too_large(most)))
        return body

    async def json(self) -> Any:
        """The parsed body, parsed once; raises HTTPException with status 413, and ValueError for what is no JSON."""
        if not hasattr(self, "_json"):
            body = await self.body()
            small = len(body) < LARGE
            submit = service_of(self).queues.prompts.submit
            self._json = parse(body) if small else await submit(tenant_of(self.scope), partial(parse, body))
        return self._json

    def form(self, **_: Any) -> Any:
        """The fields and the one file of a form; raises HTTPException for more, as each file takes a descriptor."""
        _check_form(self.headers.get("content-type"))
        return super().form(max_files=1, max_fields=8, max_part_size=LARGE)


def _check_form(content_type: str | None) -> None:
    """Raises HTTPException for a form of another kind than files come in, which may take long to read.

    And for one of another character set than UTF-8, some of which make texts that nothing can write.
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise HTTPException(400, "send the file in a form, with the header `content-type: multipart/form-data`")
    charset = options.get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in _CHARSETS:
        raise HTTPException(400, "forms are read as UTF-8 only: leave `charset` out of the header `content-type`")


def parse(body: bytes) -> Any:
    """The value of a body; raises HTTPException for one of too many values, and ValueError for what is no JSON."""
    if num_values(body) > MOST_NUMBERS:
        raise HTTPException(413, f"the body has more than {MOST_NUMBERS} values")
    value = json.loads(body)
    tokens = _lists_of_tokens(value)
    level, count = [value], 0
    for _ in range(MOST_LEVELS):
        held = [members(item) for item in level if id(item) not in tokens]
        count += sum(map(len, held))
        if count > MOST_VALUES or max(map(len, held), default=0) > MOST_MEMBERS:
            raise HTTPException(
                413,
                f"the body has more than {MOST_VALUES} values, or {MOST_MEMBERS} of them in one list or object; "
                f"only tokens may be up to {MOST_NUMBERS}",
            )
        level = [item for items in held for item in items if isinstance(item, dict | list)]
        if not level:
            return value
    raise HTTPException(400, f"the body has more than {MOST_LEVELS} levels of objects and lists in each other")


def _lists_of_tokens(value: Any) -> set[int]:
    """The ids of the lists of whole numbers where tokens stand: in `tokens`, in `prompt`, or in its lists."""
    outer = [value.get("tokens"), value.get("prompt")] if isinstance(value, dict) else []
    within = [item for items in outer if isinstance(items, list) for item in items if isinstance(item, list)]
    lists = [item for item in (*outer, *within) if isinstance(item, list)]
    return {id(item) for item in lists if all(type(member) is int for member in item)}
