"""The web page against a server that plays the recorded run of show_fixture, and Chromium through Playwright.

Modules that import it are skipped where Playwright or Chromium is not installed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")

import server_rig  # noqa: E402, F401  (skips where the server's packages are not installed)
from contrast import PAINTED, ratio  # noqa: E402
from fastapi import FastAPI, Request, Response  # noqa: E402
from fastapi.responses import JSONResponse, StreamingResponse  # noqa: E402
from show_fixture import PASSAGES, PROMPT, generation, stream_events  # noqa: E402

from ewe.server.page.routes import router  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not CHROMIUM:
    pytest.skip("no Chromium (apt-get install chromium)", allow_module_level=True)

LONG_MS = 120_000  # machines that run tests can be busy
playwright.expect.set_options(timeout=LONG_MS)

ENGINE = {
    "policy": "ewe",
    "datastore": {"name": "notes", "passages": 1234, "search": "BM25"},
    "verifier": "claims",
    "judge": "builtin",
    "unchecked": "",
    "longterm_memory": False,
}


@dataclass
class Played:
    """Answers every question with the recorded run; `requests` holds what was asked.

    key: asks for it. gate: answers stop until it is opened, before the event `held` (its kind, and the how many-th it
    is): the last sentence, if a test does not say otherwise. reasons: whether the model reasons before each draft.
    refusals: statuses with messages that come first.
    """

    key: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    held: tuple[str, int] = ("sentence", 6)
    refusals: list[tuple[int, str, dict[str, str]]] = field(default_factory=list)
    reasons: bool = False
    breaks: bool = False
    is_empty: bool = False
    disconnected: threading.Event = field(default_factory=threading.Event)
    url: str = ""
    engine: dict[str, Any] = field(default_factory=lambda: dict(ENGINE))
    checks_every_sentence: bool = True

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/v1/models")
        async def models(request: Request) -> Response:
            if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
                return error(401, "this server needs an API key")
            return JSONResponse({"object": "list", "data": [{"id": "recorded", "object": "model"}]})

        @app.get("/page/start.json")
        async def start() -> Response:
            return JSONResponse(
                {"examples": [PROMPT], "engine": self.engine, "checks_every_sentence": self.checks_every_sentence}
            )

        @app.post("/v1/verify")
        async def verify(request: Request) -> Response:
            self.requests.append(await request.json())
            return JSONResponse(CHECKED)

        @app.post("/v1/chat/completions")
        async def chat(request: Request) -> Response:
            self.requests.append({**await request.json(), "key": request.headers.get("authorization")})
            if self.refusals:
                return error(*self.refusals.pop(0))
            return StreamingResponse(self.records(), media_type="text/event-stream")

        app.include_router(router)  # last, so that the routes above go first
        return app

    async def records(self) -> AsyncIterator[str]:
        try:
            async for text in self._records():
                yield text
        except (asyncio.CancelledError, GeneratorExit):
            self.disconnected.set()
            raise

    async def _records(self) -> AsyncIterator[str]:
        yield ": ping\n\n"
        seen: Counter[str] = Counter()
        for event in [] if self.is_empty else stream_events():
            seen[event.kind] += 1
            if self.reasons and event.kind == "draft":
                yield record({"choices": [{"index": 0, "delta": {"reasoning_content": "She was born."}}]})
            while (event.kind, seen[event.kind]) == self.held and not self.gate.is_set():
                await asyncio.sleep(0.02)
            if self.breaks and seen["sentence"] == 3:
                yield record({"error": {"message": "the engine stopped", "type": "server_error", "code": None}})
                return
            if event.kind == "text":
                yield record({"choices": [{"index": 0, "delta": {"content": event.data["text"]}}]})
            elif event.kind != "finish":
                yield record({"choices": [], "ewe": {"event": event.kind, "data": dict(event.data)}})
        yield record({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if not self.is_empty:
            yield record({"choices": [], "ewe": result()})
        yield "data: [DONE]\n\n"


CLAIM = {"text": "She was born in Lund", "verdict": "refuted", "score": 0.9, "source_ids": ["p1"]}
CHECKED = {
    "verdict": "refuted",
    "support_score": 0.0,
    "sentences": [
        {"start_index": 0, "end_index": 6, "text": "🌊 Hm.", "verdict": "not_checked", "score": 0.0, "claims": [],
         "evidence": [], "notes": [], "reason": "no checkable claim"},
        {"start_index": 7, "end_index": 28, "text": "She was born in Lund.", "verdict": "refuted", "score": 0.0,
         "claims": [CLAIM], "notes": ["sources disagree"], "reason": "",
         "evidence": [{"source_id": "p1", "stance": "refuted", "score": 0.9, "excerpt": "born in Orvane",
                       "claim": "She was born in Lund"}]},
    ],
    "sources": [{**asdict(PASSAGES["p1"]), "score": None}],
    "error": "",
}  # fmt: skip


def record(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"message": message, "type": "error"}}, status_code=status, headers=headers)


def result() -> dict[str, Any]:
    done = generation()
    sentences = [{"source_ids": list(item.source_ids), "reason": item.reason} for item in done.sentences]
    return {
        "sentences": sentences,
        "sources": [asdict(source) for source in done.sources.values()],
        "stats": asdict(done.stats),
    }


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; its contexts know nothing of each other."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def visiting(tab: Any, url: str) -> Iterator[list[str]]:
    """The tab at this address, and afterwards as it was before; gives what its console says.

    Tests share a tab because a new one is a new process, which takes longer than most of them.
    """
    said: list[str] = []

    def hear(message: Any) -> None:
        said.append(message.text)

    def catch(error: Any) -> None:
        said.append(str(error))

    tab.on("console", hear)
    tab.on("pageerror", catch)
    tab.goto(url)
    try:
        yield said
    finally:
        tab.evaluate("localStorage.clear()")  # another server may get the same port
        tab.remove_listener("console", hear)
        tab.remove_listener("pageerror", catch)
        tab.mouse.move(0, 0)
        tab.emulate_media(color_scheme="light", reduced_motion="no-preference")
        tab.goto("about:blank")


def patient(page: Any) -> Any:
    """The page, waiting long for what is to happen on it."""
    page.set_default_timeout(LONG_MS)
    return page


def contrast(page: Any, selector: str) -> float:
    """The WCAG contrast of an element's text, once there is such an element."""
    return ratio(page.wait_for_function(PAINTED, arg=selector).json_value())
