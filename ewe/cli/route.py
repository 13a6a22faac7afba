"""`ewe route`, and `ewe serve --replicas`: one address for many servers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options
from ewe.cli.engine import as_assignments, server_packages
from ewe.config import Config, is_postgres
from ewe.errors import ConfigError, DatastoreError
from ewe.open_datastore import open_datastore

if TYPE_CHECKING:
    from ewe.server.settings import ServerSettings
    from ewe.server.traffic.affinity import FindPassage

_ROOT = re.compile(r"https?://[^/?#@\s]+/?")  # it is shown to clients, so it holds no user


def route(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Servers, e.g. http://10.0.0.2:8000.")],
    host: options.Host = None,
    port: options.Port = None,
    datastore: options.Datastore = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Route requests to running servers: requests that need the same passages go to the same server.

    With --datastore (that of the servers) the router looks up the passages; otherwise it uses the question's words.
    """
    from ewe.server.settings import resolve_settings

    # Without one the built-in model's settings would bring theirs.
    named = datastore if datastore is not None or config is not None else "none"
    first = as_assignments({"datastore": named, "server.host": host, "server.port": port})
    chosen, server, _ = resolve_settings(None, config, os.environ, [*first, *(settings or ())])
    with server_packages("ewe route"):
        from ewe.server.router.replicas import Replica, ReplicaSet
        from ewe.server.router.router_process import serve_router
    wrong = [url.rpartition("@")[2] for url in urls if not _ROOT.fullmatch(url)]
    if wrong:
        form = "http://HOST:PORT or https://HOST:PORT, without user and path"
        raise ConfigError(f"a server's address is {form}, got {', '.join(wrong)}")
    names = dict.fromkeys(url.rstrip("/") for url in urls)
    serve_router(server, ReplicaSet([Replica(name, name) for name in names]), find_passage=_find_passage(chosen))


def serve_replicas(
    config: Config,
    server: ServerSettings,
    count: int,
    given: Sequence[str],
    assignments: Sequence[str],
    notes: Sequence[str],
) -> None:
    """Starts `count` servers with the same settings and a router before them, until it is told to stop.

    given, assignments: the command line that the settings came from. notes: to be printed. Raises ConfigError.
    """
    if config.longterm.path is not None and not is_postgres(config.longterm.path):
        raise ConfigError(
            "--replicas: a folder of memories (longterm.path) has one writer; start one server, leave it out, or keep "
            "them in PostgreSQL"
        )
    if str(config.datastore).startswith("milvus+file:"):
        message = "--replicas: a file of Milvus Lite is for one process; start one server, or push to a Milvus server"
        raise ConfigError(message)
    with server_packages("ewe serve --replicas"):
        from ewe.server.router.processes import ReplicaProcess, device_environment
        from ewe.server.router.replicas import Replica, ReplicaSet
        from ewe.server.router.router_process import serve_router
    from ewe.server.observability.log_lines import say

    for line in notes:
        say(line)
    gpus_each = 0 if config.model.device == "cpu" else config.model.tensor_parallel
    command = [sys.executable, "-m", "ewe.cli.main", *given]
    replicas, processes = [], []
    for number in range(count):
        own = ["server.trusted_proxies=[127.0.0.1]", "server.host=127.0.0.1"]  # only the router comes in
        own += ["server.batch_folder=null"] if number else []
        settings = [part for item in [*assignments, *own] for part in ("--set", item)]
        replicas.append(Replica(str(number)))
        environment = device_environment(number, count, gpus_each, os.environ)
        processes.append(ReplicaProcess(replicas[-1], [*command, *settings], environment))
    serve_router(server, ReplicaSet(replicas), processes, _find_passage(config))


def _find_passage(config: Config) -> FindPassage | None:
    """Looks up by words, without a model, what the best passage for a question is about; None without a datastore."""
    if config.retrieval.retriever == "dense":
        return None
    lexical = config.retrieval.model_copy(update={"retriever": "bm25", "reranker": None})
    retriever, _ = open_datastore(config.datastore, lexical)
    if retriever is None:
        return None

    def find(question: str) -> str:
        try:
            [hits] = retriever.retrieve([question], 1)
        except DatastoreError:  # for the servers to tell: here it only helps to choose one
            return ""
        return (hits[0].passage.title or hits[0].passage.id) if hits else ""

    return find
