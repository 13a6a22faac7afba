"""A server in a thread around the built-in model, which is read once; what its tests ask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from server_rig import LONG, PROMPT, httpx, serving, wait_until_idle

from ewe import LLM
from ewe.config import resolve_config
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

CHAT: Any = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 12}
ENDLESS: Any = {**CHAT, "max_tokens": 1500, "ignore_eos": True}
CONFIG = resolve_config("builtin", None)


@cache
def loaded_model() -> LoadedModel:
    return load_model(CONFIG.model)


@contextlib.contextmanager
def server(settings: ServerSettings | None = None, **changes: Any) -> Iterator[Any]:
    """A server around the built-in model; gives a client, with the engine as its `llm`. Nothing may be left in it."""
    assignments = changes.pop("assignments", [])
    with LLM(config=CONFIG.override(assignments), loaded=loaded_model(), **changes) as llm:
        app = create_app(llm, settings or ServerSettings())
        with serving(app) as url, httpx.Client(base_url=url, timeout=LONG) as client:
            client.llm, client.app = llm, app
            yield client
            wait_until_idle(llm)
            assert app.state.service.admission.num_inside == 0
