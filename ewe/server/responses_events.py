"""The events of a response that is streamed: their order, their numbers, and the record that each is on the wire."""

from itertools import count
from typing import Any

from ewe.server.schemas.response_schemas import OutputMessage, OutputText, ResponseBody
from ewe.server.sse import record

_PLACE = {"output_index": 0, "content_index": 0}
_EMPTY = OutputText(text="", annotations=[], logprobs=[])


class ResponseEvents:
    """Makes the records of one stream; opening: the response as it is before its first word.

    Call `begin`, `text` for every piece, then `finish` with the finished response, or `fail`.
    """

    def __init__(self, opening: ResponseBody, item_id: str) -> None:
        self._opening = opening
        self._item = OutputMessage(id=item_id, status="in_progress", content=[])
        self._place = {"item_id": item_id, **_PLACE}
        self._numbers = count()

    def begin(self) -> str:
        """The records that open the response, its one message and its one part."""
        return "".join(
            [
                self._record("response.created", response=self._opening),
                self._record("response.in_progress", response=self._opening),
                self._record("response.output_item.added", output_index=0, item=self._item),
                self._record("response.content_part.added", **self._place, part=_EMPTY),
            ]
        )

    def text(self, delta: str) -> str:
        """The record of a piece of text."""
        return self._record("response.output_text.delta", **self._place, delta=delta, logprobs=[])

    def happening(self, kind: str, data: dict[str, Any]) -> str:
        """The record of something that happened to the text or the memory; not among OpenAI's events."""
        return self._record("response.ewe.event", event=kind, data=data)

    def finish(self, body: ResponseBody) -> str:
        """The records that close part, message and response; the citations come first, each with its place."""
        item = body.output[0]
        part = item.content[0]
        kind = "response.output_text.annotation.added"
        records = [
            self._record(kind, **self._place, annotation_index=index, annotation=annotation)
            for index, annotation in enumerate(part.annotations)
        ]
        records += [
            self._record("response.output_text.done", **self._place, text=part.text, logprobs=part.logprobs),
            self._record("response.content_part.done", **self._place, part=part),
            self._record("response.output_item.done", output_index=0, item=item),
            self._record(f"response.{body.status}", response=body),
        ]
        return "".join(records)

    def fail(self, body: ResponseBody) -> str:
        """The record of a response that broke off."""
        return self._record("response.failed", response=body)

    def _record(self, kind: str, **fields: Any) -> str:
        return record({"type": kind, "sequence_number": next(self._numbers), **fields}, kind)
