"""The routes of the web pages: their files, and what the first says before the first question.

Answers come to the page by the public routes, as to every other client.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

import ewe.evaluation.report
from ewe.evaluation.world.builtin import example_prompts
from ewe.server.engine_service import service_of
from ewe.server.schemas.operation_schemas import PageStart
from ewe.server.traffic.fair_queue import tenant_of

router = APIRouter(include_in_schema=False)

_OWN, _REPORT = (Path(str(module)).parent / "assets" for module in (__file__, ewe.evaluation.report.__file__))
# The report pages draw sentences, evidence, memory and numbers; what is live is the page's own.
_SCRIPTS = (
    *(_REPORT / name for name in ("dom.js", "sentence.js", "answer.js", "evidence.js", "timeline.js", "tables.js")),
    _REPORT / "reader.js",
    *(_OWN / name for name in ("wire.js", "run.js", "player.js", "answer_view.js", "check.js", "settings.js")),
    *(_OWN / name for name in ("start.js", "conversation.js", "ask.js", "main.js")),
)
_MEMORY_SCRIPTS = (_REPORT / "dom.js", _OWN / "wire.js", _OWN / "memories.js")
_STYLES = (_REPORT / "page.css", _OWN / "ask.css")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


_FILES = {
    "/": ("text/html", (_OWN / "page.html",)),
    "/memories": ("text/html", (_OWN / "memories.html",)),
    "/page/page.js": ("text/javascript", _SCRIPTS),
    "/page/memories.js": ("text/javascript", _MEMORY_SCRIPTS),
    "/page/page.css": ("text/css", _STYLES),
    "/page/icon.svg": ("image/svg+xml", (_OWN / "icon.svg",)),
}


async def file(request: Request) -> Response:
    """One of the pages, its scripts, its style or its icon."""
    media_type, parts = _FILES[request.url.path]
    text = "\n".join(map(_text, parts))
    if media_type == "text/javascript":  # with none of its names visible from outside
        text = f"(() => {{\n'use strict';\n{text}}})();\n"
    return page_answer(request, text, media_type)


for _path in _FILES:
    router.add_api_route(_path, file)


@router.get("/page/start.json")
async def start(request: Request) -> PageStart:
    """What is on, and what can be asked for a beginning: of the built-in model, whose world nobody knows."""
    service = service_of(request)
    config = service.engine.prompts.config
    is_builtin = (config.model.name, config.datastore) == ("builtin", "builtin")
    examples = await service.queues.ends.submit(tenant_of(request.scope), example_prompts) if is_builtin else []
    summary = service.summary
    checks_all = summary is not None and not summary.unchecked and config.feedback.verify_when == "interval"
    return PageStart(examples=examples, engine=summary, checks_every_sentence=checks_all)


@lru_cache
def _text(part: Path) -> str:
    return part.read_text(encoding="utf-8")


def page_answer(request: Request, text: str, media_type: str) -> Response:
    """The text under the page's headers, or 304 for a browser that has it."""
    body = text.encode()
    headers = {**_HEADERS, "etag": f'"{hashlib.sha256(body).hexdigest()[:16]}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)
