"""The events of a message that is streamed in Anthropic's form: their order, the numbers of blocks, their records."""

from typing import Any

from ewe.server.schemas.anthropic_answers import AnswerBlock, MessageResponse
from ewe.server.sse import record


class MessageEvents:
    """Makes the records of one stream: call `begin`, `block` for every piece, then `finish`.

    Pieces without citations that follow each other are one block.
    """

    def __init__(self) -> None:
        self._number = 0
        self._is_open = False

    def begin(self, message: MessageResponse) -> str:
        """The record that opens the message; message: as it is before its first word."""
        return self._record("message_start", message=message.model_dump(exclude={"ewe"}))

    def block(self, block: AnswerBlock) -> str:
        """The records of a piece of the answer."""
        if block.citations is None:
            return self._open() + self._delta(type="text_delta", text=block.text)
        records = self._close() + self._open(cited=True) + self._delta(type="text_delta", text=block.text)
        for citation in block.citations:
            records += self._delta(type="citations_delta", citation=citation)
        return records + self._close()

    def finish(self, message: MessageResponse) -> str:
        """The records that close block and message; message: as it is in the end."""
        delta = {"stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence}
        last = self._record("message_delta", delta=delta, usage=message.usage, ewe=message.ewe)
        return self._close() + last + self._record("message_stop")

    def _open(self, cited: bool = False) -> str:
        if self._is_open:
            return ""
        self._is_open = True
        block = {"type": "text", "text": "", **({"citations": []} if cited else {})}
        return self._record("content_block_start", index=self._number, content_block=block)

    def _close(self) -> str:
        if not self._is_open:
            return ""
        self._is_open = False
        self._number += 1
        return self._record("content_block_stop", index=self._number - 1)

    def _delta(self, **delta: Any) -> str:
        return self._record("content_block_delta", index=self._number, delta=delta)

    def _record(self, kind: str, **fields: Any) -> str:
        return record({"type": kind, **fields}, kind)
