"""Finished responses, so that others can follow them by their ids: in this process's memory, and not for ever."""

import json
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import TypeAdapter

from ewe.server.http.error_responses import RefusedError
from ewe.server.http.json_sizes import MOST_NUMBERS, num_values
from ewe.server.schemas.response_answers import ResponseBody
from ewe.server.schemas.response_items import InputItem

_WITHOUT_EFFECT = {"content": {"__all__": {"logprobs"}}}
_ITEMS: TypeAdapter[list[InputItem]] = TypeAdapter(list[InputItem])


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response and all that was said up to its end, earlier responses and their inputs included.

    Both as JSON, since the objects take ten times the memory. said: what it answered, `num_items` of them, then what it
    says, without log-probabilities.
    """

    id: str
    body: bytes
    said: bytes
    num_items: int

    @classmethod
    def of(cls, body: ResponseBody, items: Sequence[InputItem]) -> Self:
        """A response to these items."""
        output = [item.model_dump(mode="json", exclude=_WITHOUT_EFFECT) for item in body.output]
        said = _ITEMS.dump_json([*items, *_ITEMS.validate_python(output)], exclude_none=True)
        return cls(body.id, body.model_dump_json().encode(), said, len(items))

    @property
    def items(self) -> list[dict[str, Any]]:
        """What it answered."""
        said: list[dict[str, Any]] = json.loads(self.said)
        return said[: self.num_items]

    def conversation(self, most_bytes: int) -> list[InputItem]:
        """What a response that follows goes on with; raises RefusedError for more than a request itself may say.

        Without an end conversations would take longer to read with each turn. most_bytes: of a request.
        """
        if len(self.said) > most_bytes or num_values(self.said) > MOST_NUMBERS:
            raise RefusedError(
                400,
                f"the conversation up to {self.id!r} is larger than a request may be ({len(self.said)} bytes): begin a "
                "new one, with what is still needed as input",
                code="context_length_exceeded",
            )
        return _ITEMS.validate_json(self.said)

    @property
    def num_bytes(self) -> int:
        """About what it takes."""
        return len(self.body) + len(self.said)


class ResponseStore:
    """The responses of every key, each with at most `most_bytes` of them; the oldest go."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._of_keys: dict[str, OrderedDict[str, StoredResponse]] = {}
        self._num_bytes: Counter[str] = Counter()

    @property
    def is_on(self) -> bool:
        """Whether anything is stored."""
        return self._most > 0

    def put(self, key: str, response: StoredResponse) -> None:
        """Keeps a response of a key, unless it alone is larger than all may be."""
        if response.num_bytes > self._most:
            return
        kept = self._of_keys.setdefault(key, OrderedDict())
        kept[response.id] = response
        self._num_bytes[key] += response.num_bytes
        while self._num_bytes[key] > self._most:
            self.delete(key, next(iter(kept)))

    def get(self, key: str, response_id: str) -> StoredResponse:
        """The response of a key; raises RefusedError if it is not there."""
        kept = self._of_keys.get(key)
        stored = None if kept is None else kept.get(response_id)
        if stored is None:
            message = f"there is no response {response_id!r} of this key, or no longer"
            raise RefusedError(404, message, code="response_not_found")
        return stored

    def delete(self, key: str, response_id: str) -> None:
        """Forgets a response; raises RefusedError if it is not there."""
        self._num_bytes[key] -= self.get(key, response_id).num_bytes
        del self._of_keys[key][response_id]
