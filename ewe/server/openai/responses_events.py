"""The events of a response that is streamed: their order, their numbers, and the record that each is on the wire."""

from itertools import count
from typing import Any

from ewe.server.http.sse import record
from ewe.server.schemas.response_answers import (
    ItemStatus,
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputReasoning,
    OutputText,
    ReasoningText,
    ResponseBody,
)

_EMPTY = OutputText(text="", annotations=[], logprobs=[])


class ResponseEvents:
    """Makes the records of one stream; opening: the response as it is before its first word.

    Call `begin`, `reasoning` and `text` for every piece, then `finish` with the finished response, or `fail`. What is
    reasoned, what is said and every call are items of their own, in this order.
    """

    def __init__(self, opening: ResponseBody, message_id: str, reasoning_id: str) -> None:
        self._opening = opening
        self._message_id, self._reasoning_id = message_id, reasoning_id
        self._thought, self._open = "", ""  # the type of the item that is open
        self._index = -1  # of the last item that was opened
        self._numbers = count()

    def begin(self) -> str:
        """The records that open the response."""
        created = self._record("response.created", response=self._opening)
        return created + self._record("response.in_progress", response=self._opening)

    def reasoning(self, delta: str) -> str:
        """The records of a piece of what the model reasons."""
        opened = self._opened("reasoning")
        self._thought += delta
        return opened + self._record("response.reasoning_text.delta", **self._place(self._reasoning_id), delta=delta)

    def text(self, delta: str) -> str:
        """The records of a piece of text."""
        place = self._opened("message"), self._place(self._message_id)
        return place[0] + self._record("response.output_text.delta", **place[1], delta=delta, logprobs=[])

    def happening(self, kind: str, data: dict[str, Any]) -> str:
        """The record of something that happened to the text or the memory; not among OpenAI's events."""
        return self._record("response.ewe.event", event=kind, data=data)

    def finish(self, body: ResponseBody) -> str:
        """The records that close all items and the response; citations come before the end of their text."""
        items = "".join(map(self._finished, body.output))
        return items + self._record(f"response.{body.status}", response=body)

    def fail(self, body: ResponseBody) -> str:
        """The record of a response that broke off."""
        return self._record("response.failed", response=body)

    def _finished(self, item: OutputItem) -> str:
        if isinstance(item, OutputReasoning):
            return self._closed_reasoning(item.status) if self._open == "reasoning" else ""  # else before the text
        return self._call(item) if isinstance(item, OutputCall) else self._message(item)

    def _opened(self, kind: str) -> str:
        """The records of an item of this type that begins, if none is open; what is reasoned ends before."""
        if self._open == kind:
            return ""
        closed = self._closed_reasoning() if self._open else ""
        self._open = kind
        self._index += 1
        item: OutputItem
        part: OutputText | ReasoningText
        if kind == "reasoning":
            item, part = (
                OutputReasoning(id=self._reasoning_id, status="in_progress", content=[]),
                ReasoningText(text=""),
            )
        else:
            item, part = OutputMessage(id=self._message_id, status="in_progress", content=[]), _EMPTY
        added = self._record("response.output_item.added", output_index=self._index, item=item)
        return closed + added + self._record("response.content_part.added", **self._place(item.id), part=part)

    def _closed_reasoning(self, status: ItemStatus = "completed") -> str:
        place, part = self._place(self._reasoning_id), ReasoningText(text=self._thought)
        item = OutputReasoning(id=self._reasoning_id, status=status, content=[part])
        self._open = ""
        return (
            self._record("response.reasoning_text.done", **place, text=part.text)
            + self._record("response.content_part.done", **place, part=part)
            + self._record("response.output_item.done", output_index=self._index, item=item)
        )

    def _message(self, item: OutputMessage) -> str:
        records, part, place = [self._opened("message")], item.content[0], self._place(item.id)
        kind = "response.output_text.annotation.added"
        records += [
            self._record(kind, **place, annotation_index=index, annotation=annotation)
            for index, annotation in enumerate(part.annotations)
        ]
        records += [
            self._record("response.output_text.done", **place, text=part.text, logprobs=part.logprobs),
            self._record("response.content_part.done", **place, part=part),
            self._record("response.output_item.done", output_index=self._index, item=item),
        ]
        return "".join(records)

    def _call(self, item: OutputCall) -> str:
        self._index += 1
        place = {"item_id": item.id, "output_index": self._index}
        begun = item.model_copy(update={"status": "in_progress", "arguments": ""})
        kind = "response.function_call_arguments"
        return (
            self._record("response.output_item.added", output_index=self._index, item=begun)
            + self._record(f"{kind}.delta", **place, delta=item.arguments)
            + self._record(f"{kind}.done", **place, name=item.name, arguments=item.arguments)
            + self._record("response.output_item.done", output_index=self._index, item=item)
        )

    def _place(self, item_id: str) -> dict[str, Any]:
        return {"item_id": item_id, "output_index": self._index, "content_index": 0}

    def _record(self, kind: str, **fields: Any) -> str:
        return record({"type": kind, "sequence_number": next(self._numbers), **fields}, kind)
