"""What is printed when the server starts: phases with their times, the memory budget, routes, settings.

Owns: these lines. Knows the app and the engine; no line holds a key.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from ewe.llm import LLM
from ewe.server.settings import ServerSettings
from ewe.server.version import VERSION


def report_start(app: FastAPI, settings: ServerSettings, port: int, notes: Sequence[str] = ()) -> None:
    """Prints where the server listens and what it answers, before anything is loaded."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    _say(f"ewe {VERSION} listens on http://{host}:{port}; /ready says when the model is loaded")
    for line in (*_warnings(settings), *notes):
        _say(line)
    for line in changed("server", settings):
        _say(f"setting {line}")
    for path, methods in sorted(app.openapi()["paths"].items()):
        _say(f"route {', '.join(methods).upper()} {path}")
    _say("route GET / (the page), /openapi.json")


def report_engine(llm: LLM, seconds: float) -> None:
    """Prints what the engine is and what its memory holds, once it is loaded."""
    engine, config = llm.client.engine, llm.config
    _say(f"phase loading: {seconds:.2f} s ({config.model.name} on {engine.loaded.model.device})")
    _say(f"engine {llm.client.components.summary}")
    for line in engine.budget.lines() if engine.budget is not None else ():
        _say(f"memory {line}")
    if llm.client.components.memories is not None:
        _say(f"memories: {len(llm.memories.service.store)} in {config.longterm.path} (longterm.path)")
    for line in changed("", config):
        _say(f"setting {line}")


def changed(group: str, settings: BaseModel) -> Iterator[str]:
    """`name = value` of every setting that differs from its default; secrets stay hidden."""
    for name, field in type(settings).model_fields.items():
        value: Any = getattr(settings, name)
        path = f"{group}.{name}" if group else name
        if isinstance(value, BaseModel):
            yield from changed(path, value)
        elif value != field.get_default(call_default_factory=True):
            yield f"{path} = {value}"


def _warnings(settings: ServerSettings) -> Iterator[str]:
    try:
        is_local = settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        is_local = False
    if not is_local and not settings.keys():
        yield "warning: whoever reaches this address can use the server; set server.api_key or server.api_key_file"
    if "*" in settings.cors_origins:
        yield "warning: server.cors_origins lets pages of every web site ask"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
