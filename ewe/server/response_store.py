"""Finished responses, so that others can follow them by their ids: in this process's memory, and not for ever."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from ewe.server.error_responses import RefusedError
from ewe.server.schemas.response_answers import ResponseBody
from ewe.server.schemas.response_items import InputItem

_ITEM: TypeAdapter[InputItem] = TypeAdapter(InputItem)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response and all that it answered, earlier responses and their inputs included."""

    body: ResponseBody
    items: Sequence[InputItem]

    @property
    def conversation(self) -> list[InputItem]:
        """What a response that follows goes on with."""
        return [*self.items, *(_ITEM.validate_python(item.model_dump(mode="json")) for item in self.body.output)]

    @property
    def num_bytes(self) -> int:
        """About what it takes."""
        return len(self.body.model_dump_json()) + sum(len(item.model_dump_json()) for item in self.items)


class ResponseStore:
    """The responses of every key, each with at most `most_bytes` of them; the oldest go."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._of_keys: dict[str, OrderedDict[str, tuple[StoredResponse, int]]] = {}

    @property
    def is_on(self) -> bool:
        """Whether anything is stored."""
        return self._most > 0

    def put(self, key: str, response: StoredResponse) -> None:
        """Keeps a response of a key."""
        kept = self._of_keys.setdefault(key, OrderedDict())
        kept[response.body.id] = response, response.num_bytes
        total = sum(size for _, size in kept.values())
        while total > self._most:
            _, (_, size) = kept.popitem(last=False)
            total -= size

    def get(self, key: str, response_id: str) -> StoredResponse:
        """The response of a key; raises RefusedError if it is not there."""
        kept = self._of_keys.get(key)
        if kept is None or response_id not in kept:
            message = f"there is no response {response_id!r} of this key, or no longer"
            raise RefusedError(404, message, code="response_not_found")
        return kept[response_id][0]

    def delete(self, key: str, response_id: str) -> None:
        """Forgets a response; raises RefusedError if it is not there."""
        self.get(key, response_id)
        del self._of_keys[key][response_id]
