"""The events of a message that is streamed in Anthropic's form: their order, the numbers of blocks, their records."""

from typing import Any

from ewe.server.http.sse import record
from ewe.server.schemas.anthropic_answers import AnswerBlock, MessageResponse, ThinkingBlock
from ewe.types import ToolCall


class MessageEvents:
    """Makes the records of one stream: call `begin`, `thinking` and `block` for every piece, `call`, then `finish`.

    Pieces of thinking, and pieces without citations, that follow each other are one block.
    """

    def __init__(self) -> None:
        self._number = 0
        self._open = ""  # the type of the block that is open
        self._thought = ""

    def begin(self, message: MessageResponse) -> str:
        """The record that opens the message; message: as it is before its first word."""
        return self._record("message_start", message=message.model_dump(exclude={"ewe"}))

    def thinking(self, text: str) -> str:
        """The records of a piece of what the model reasons."""
        opened = self._opened("thinking", thinking="", signature="")
        self._thought += text
        return opened + self._delta("thinking_delta", thinking=text)

    def block(self, block: AnswerBlock) -> str:
        """The records of a piece of the answer."""
        if block.citations is None:
            return self._opened("text", text="") + self._delta("text_delta", text=block.text)
        records = self._closed() + self._opened("text", text="", citations=[])
        records += self._delta("text_delta", text=block.text)
        for citation in block.citations:
            records += self._delta("citations_delta", citation=citation)
        return records + self._closed()

    def call(self, call: ToolCall) -> str:
        """The records of a call."""
        opened = self._closed() + self._opened("tool_use", id=call.id, name=call.name, input={})
        return opened + self._delta("input_json_delta", partial_json=call.arguments) + self._closed()

    def finish(self, message: MessageResponse) -> str:
        """The records that close block and message; message: as it is in the end."""
        delta = {"stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence}
        last = self._record("message_delta", delta=delta, usage=message.usage, ewe=message.ewe)
        return self._closed() + last + self._record("message_stop")

    def _opened(self, kind: str, **empty: Any) -> str:
        """The record of a block that begins, if none of its type is open."""
        if self._open == kind:
            return ""
        closed, self._open = self._closed(), kind
        block = {"type": kind, **empty}
        return closed + self._record("content_block_start", index=self._number, content_block=block)

    def _closed(self) -> str:
        """The records that close a block, if one is open."""
        if not self._open:
            return ""
        signed = ""
        if self._open == "thinking":
            signed = self._delta("signature_delta", signature=ThinkingBlock.of(self._thought).signature)
        self._open = self._thought = ""
        self._number += 1
        return signed + self._record("content_block_stop", index=self._number - 1)

    def _delta(self, kind: str, **delta: Any) -> str:
        return self._record("content_block_delta", index=self._number, delta={"type": kind, **delta})

    def _record(self, kind: str, **fields: Any) -> str:
        return record({"type": kind, **fields}, kind)
