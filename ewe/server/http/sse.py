"""Server-sent events on the wire: records and comments."""

from typing import Any

from pydantic_core import to_json

DONE = "data: [DONE]\n\n"
"""What ends a stream of OpenAI's and Cohere's."""


def record(data: Any, event: str = "") -> str:
    """One record of a stream; data: what JSON can hold, and pydantic's models; event: its name, where it has one."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {to_json(data).decode()}\n\n"


def comment(text: str) -> str:
    """A line of a stream that its readers pass over; text: one line."""
    return f": {text}\n\n"


PING = comment("ping")
DEATH = comment("engine_dead")
"""Before the record of an engine's death, which each API spells in its own way: for whoever asks elsewhere then."""
