"""What a stream says of each of the engine's events: text to add, an event for those who asked, or a comment."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ewe.engine.answer_text.stream_events import TRACED_EVENTS
from ewe.server.engine_client.bridge import RunEvent
from ewe.server.schemas.common import EweOptions

_LIVE_EVENTS = TRACED_EVENTS | {"draft", "sentence"}
_BEGINNINGS = frozenset({"checking", "retrieving", "asking"})


class Part(NamedTuple):
    """One of: `delta`, text that goes on where the text ends; `event` with its `data`; `comment`, for no program.

    Or `reasoning`: what the model reasons before the text.
    """

    delta: str = ""
    event: str = ""
    data: Mapping[str, Any] | None = None
    comment: str = ""
    reasoning: str = ""


class StreamParts:
    """The parts of one request's stream.

    options.stream "final": text is sent when it can no longer be taken back. "draft": it is sent as it is written, and
    a "revision" says what of it is taken back. Who asked for no events gets a comment where a check, a retrieval
    or a step of a policy begins, so that the stream does not look dead while it is under way.
    """

    def __init__(self, options: EweOptions) -> None:
        self._drafts = options.stream == "draft"
        self._events = options.events
        self._texts: dict[int, str] = {}

    def of(self, item: RunEvent) -> Iterator[Part]:
        """The parts of one event, in order."""
        choice, kind, data = item.choice, item.event.kind, item.event.data
        if kind == ("draft" if self._drafts else "text"):
            if self._drafts:
                self._texts[choice] = self._texts.get(choice, "") + data["text"]
            yield Part(delta=data["text"])
            return
        if kind == "reasoning":
            yield Part(reasoning=data["text"])
        if kind == "rewind" and self._drafts:
            yield Part(event="revision", data=self._revision(choice, data))
        if self._events and kind in _LIVE_EVENTS:
            yield Part(event=kind, data=data)
        elif kind == "checking":
            yield Part(comment=f"checking sentence {data['number']}")
        elif kind == "retrieving":
            yield Part(comment="retrieving")
        elif kind == "asking":
            yield Part(comment=f"asking: {data['step']}")

    def _revision(self, choice: int, rewind: Mapping[str, Any]) -> dict[str, Any]:
        """What is taken back of the text so far: its code points [start, end)."""
        text, start = self._texts.get(choice, ""), rewind["kept_chars"]
        self._texts[choice] = text[:start]
        why = {name: rewind[name] for name in ("reason", "attempt")}
        return {"start": start, "end": len(text), "removed": text[start:], **why}


def requested_events(options: EweOptions) -> frozenset[str]:
    """The kinds of events that a stream with these options is made of."""
    kinds = _BEGINNINGS | {"text", "reasoning"}
    if options.stream == "draft":
        kinds |= {"draft", "rewind"}
    return kinds | _LIVE_EVENTS if options.events else kinds
