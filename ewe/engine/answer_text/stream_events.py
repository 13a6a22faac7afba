"""What readers of a stream learn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TRACED_EVENTS = frozenset(
    {
        *("retrieving", "retrieval", "checking", "verification", "rewind", "refresh", "evict", "restore"),
        *("quote", "asking", "answered", "decision"),
    }
)
"""Kinds of trace events that a stream shows, too."""


@dataclass(slots=True)  # not frozen, because some are made for every row of every step
class StreamEvent:
    """Something a reader of the stream learns.

    kind: "text" {text, num_tokens, num_discarded}: final text, to be shown in order, and how many tokens have been
    written by then, and taken back; "draft" {text, start}: provisional text, which a rewind cuts to its `kept_chars`;
    "reasoning" {text}: what the model reasons before it answers, of which nothing is taken back;
    those of TRACED_EVENTS: the trace event's data; "sentence": a sentence is final; "finish" {reason,
    queued_s}, with `generation`. index: which of the request's `n` answers it is about.
    """

    kind: str
    data: Mapping[str, Any]
    generation: Any = None
    index: int = 0
