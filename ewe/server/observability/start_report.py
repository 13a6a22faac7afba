"""What is printed when the server starts: phases and how far they are, the memory budget, routes, settings."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ewe.config.loading import LoadStep
from ewe.server import VERSION
from ewe.server.observability.log_lines import say
from ewe.server.settings import ServerSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ewe.config import Config
    from ewe.server.engine_client.served_engine import ServedEngine

SAY_EVERY_S = 5.0  # while a phase lasts


class StartLog:
    """A line for each phase of loading as it begins, and one every few seconds of how far it is, until it is closed."""

    def __init__(self, every_s: float = SAY_EVERY_S) -> None:
        self._step = LoadStep("loading")
        self._begin = time.monotonic()
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="ewe-start-log", daemon=True)
        self._thread.start()

    def __call__(self, step: LoadStep) -> None:
        """Takes in where loading stands."""
        is_new = step.phase != self._step.phase
        self._step = step
        if is_new:
            say(f"phase {step}")

    def tell(self) -> None:
        """A line of how far it is, and since when it has been loading."""
        say(f"phase {self._step}, {time.monotonic() - self._begin:.0f} s")

    def close(self) -> None:
        """Has it say no more."""
        self._ended.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._ended.wait(self._every_s):
            self.tell()


def report_choice(config: Config) -> None:
    """Prints what is to be served."""
    parts = {
        "adapter": config.model.adapter,
        "datastore": config.datastore,
        "verifier": config.verifier,
        "longterm.path": config.longterm.path,
    }
    named = "".join(f", {name} {value}" for name, value in parts.items() if value is not None)
    say(f"model {config.model.name}{named}")


def report_start(app: FastAPI, settings: ServerSettings, port: int, notes: Sequence[str] = ()) -> None:
    """Prints where the server listens and what it answers, before anything is loaded."""
    say(f"ewe {VERSION} listens on {address(settings.host, port)}; /ready says when the model is loaded")
    for line in (*warnings(settings), *notes):
        say(line)
    for line in changed("server", settings):
        say(f"setting {line}")
    for path, methods in sorted(app.openapi()["paths"].items()):
        say(f"route {', '.join(methods).upper()} {path}")
    say("route GET / (the page), /openapi.json")


def address(host: str, port: int) -> str:
    """Where a server is reached."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def report_engine(engine: ServedEngine, seconds: float) -> None:
    """Prints what the engine is and what its memory holds, once it is loaded."""
    config = engine.prompts.config
    say(f"loaded in {seconds:.2f} s ({config.model.name} on {engine.device})")
    say(f"engine {engine.summary}")
    for line in engine.memory_lines:
        say(f"memory {line}")
    if engine.memories is not None:
        say(f"memories: {len(engine.memories.service.store)} in {config.longterm.path} (longterm.path)")
    for line in changed("", config):
        say(f"setting {line}")


def changed(group: str, settings: BaseModel) -> Iterator[str]:
    """`name = value` of every setting that differs from its default; secrets stay hidden."""
    for name, field in type(settings).model_fields.items():
        value: Any = getattr(settings, name)
        path = f"{group}.{name}" if group else name
        if isinstance(value, BaseModel):
            yield from changed(path, value)
        elif value != field.get_default(call_default_factory=True):
            yield f"{path} = {value}"


def warnings(settings: ServerSettings) -> Iterator[str]:
    """What whoever runs the server should think about. Raises ConfigError for keys that cannot be read."""
    try:
        is_local = settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        is_local = False
    if not is_local and not settings.keys():
        yield "warning: whoever reaches this address can use the server; set server.api_key or server.api_key_file"
    if "*" in settings.cors_origins:
        yield "warning: server.cors_origins lets pages of every web site ask"
