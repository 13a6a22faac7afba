"""The events of a response that is streamed: their order, their numbers, and the record that each is on the wire."""

import json
from itertools import count
from typing import Any

from ewe.report import jsonable
from ewe.server.schemas.response_schemas import OutputMessage, OutputText, ResponseBody

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
        opening = self._opening.model_dump(mode="json")
        return "".join(
            [
                self._record("response.created", response=opening),
                self._record("response.in_progress", response=opening),
                self._record("response.output_item.added", output_index=0, item=self._item.model_dump(mode="json")),
                self._record("response.content_part.added", **self._place, part=_dump(_EMPTY)),
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
        records = [
            self._record(
                "response.output_text.annotation.added",
                **self._place,
                annotation_index=index,
                annotation=annotation.model_dump(mode="json"),
            )
            for index, annotation in enumerate(part.annotations)
        ]
        logprobs = [token.model_dump(mode="json") for token in part.logprobs]
        records += [
            self._record("response.output_text.done", **self._place, text=part.text, logprobs=logprobs),
            self._record("response.content_part.done", **self._place, part=_dump(part)),
            self._record("response.output_item.done", output_index=0, item=item.model_dump(mode="json")),
            self._record(f"response.{body.status}", response=body.model_dump(mode="json")),
        ]
        return "".join(records)

    def fail(self, body: ResponseBody) -> str:
        """The record of a response that broke off."""
        return self._record("response.failed", response=body.model_dump(mode="json"))

    def _record(self, kind: str, **fields: Any) -> str:
        event = {"type": kind, "sequence_number": next(self._numbers), **fields}
        return f"event: {kind}\ndata: {json.dumps(jsonable(event), ensure_ascii=False)}\n\n"


def _dump(part: OutputText) -> dict[str, Any]:
    return part.model_dump(mode="json")
