"""A server whose model only waits, and the router before several of them; see benchmarks/replicas.py.

It has the OpenAI surface, writes a bounded number of answers at once, refuses those that its queue has no room for by
the server's own admission control, and keeps the last units that it has encoded, as the engine does. What a request's
retrieval finds comes with it, as `units`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import OrderedDict
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ewe.server.http.error_responses import add_handlers
from ewe.server.http.listener import listen
from ewe.server.settings import ServerSettings
from ewe.server.traffic.admission import AdmissionControl


class Units:
    """The units that are encoded: the last `most` that were used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, None] = OrderedDict()

    def use(self, name: str) -> bool:
        """Whether a unit is there; it is from now on."""
        hit = name in self._kept
        self._kept[name] = None
        self._kept.move_to_end(name)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return hit


def create_stand_in(places: int, answer_s: float, most_units: int, max_waiting: int) -> Starlette:
    """The server; places: answers written at once, answer_s: how long each takes, max_waiting: those that may wait."""
    units, free = Units(most_units), asyncio.Semaphore(places)
    admission = AdmissionControl(places + max_waiting, places=places)

    async def write(body: dict[str, Any]) -> dict[str, Any]:
        try:
            async with free:
                hits = sum([units.use(name) for name in body["units"]])
                await asyncio.sleep(answer_s)
        finally:
            admission.leave("")
        return {"hits": hits, "pid": os.getpid()}

    async def chat(request: Request) -> Response:
        body = await request.json()
        admission.enter("")
        if not body.get("stream"):
            return JSONResponse(await write(body))

        async def records() -> Any:
            yield 'data: {"choices": []}\n\n'
            told = str(await write(body)).replace("'", '"')
            yield f"data: {told}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(records(), media_type="text/event-stream")

    async def ping(request: Request) -> Response:
        return JSONResponse({"status": "ready", "capacity": admission.capacity})

    app = Starlette(routes=[Route("/ping", ping), Route("/v1/chat/completions", chat, methods=["POST"])])
    add_handlers(app)
    return app


def serve_router(port: int, num_replicas: int, arguments: list[str]) -> None:
    """The real router, which starts stand-ins as `ewe serve --replicas` starts servers."""
    from ewe.config.setting_names import WIKIPEDIA_SAMPLE
    from ewe.retrieval.bm25 import BM25Retriever
    from ewe.retrieval.open_retriever import open_source
    from ewe.server.router.processes import ReplicaProcess
    from ewe.server.router.replicas import Replica, ReplicaSet
    from ewe.server.router.router_process import serve_router

    def find(question: str) -> str:
        [found] = retriever.retrieve([question], 1)
        return found[0].passage.title

    retriever = BM25Retriever(open_source(WIKIPEDIA_SAMPLE))
    replicas = [Replica(str(number)) for number in range(num_replicas)]
    command = [sys.executable, "-m", "benchmarks.replicas_stand_in", *arguments]
    processes = [ReplicaProcess(replica, command, {}) for replica in replicas]
    settings = ServerSettings(port=port, drain=5.0)
    serve_router(
        settings, ReplicaSet(replicas), processes, lambda text: retriever.retrieve([text], 1)[0][0].passage.title
    )


def main() -> None:
    """One stand-in, or with --replicas the router and as many."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicas", type=int, default=0)
    parser.add_argument("--set", dest="setting", default="server.port=0")
    for name, kind in {"places": int, "answer_s": float, "units": int, "waiting": int}.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    given = parser.parse_args()
    port = int(given.setting.partition("=")[2])
    if given.replicas:
        own = ("--places", given.places, "--answer_s", given.answer_s, "--units", given.units)
        serve_router(port, given.replicas, [str(part) for part in (*own, "--waiting", given.waiting)])
    else:
        app = create_stand_in(given.places, given.answer_s, given.units, given.waiting)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listen(ServerSettings(port=port))])


if __name__ == "__main__":
    main()
