"""`ewe serve`: the engine behind HTTP."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ewe.cli import options
from ewe.cli.engine import as_assignments, server_packages
from ewe.cli.route import serve_replicas
from ewe.config.loading import OnLoad
from ewe.engine.startup.preflight import preflight

if TYPE_CHECKING:
    from ewe.server.engine_client.served_engine import ServedEngine


def serve(
    *,
    host: options.Host = None,
    port: options.Port = None,
    served_model_name: Annotated[
        list[str] | None,
        options.server(help="Model name for clients; repeatable.", show_default=False),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        options.server(help="File of API keys of the server, one per line.", show_default=False),
    ] = None,
    replicas: Annotated[int, options.server(help="Servers to start, behind one router on the port.", min=1)] = 1,
    engine: options.ServedEngineOptions,
) -> None:
    """Serve a model over OpenAI-compatible HTTP, with a web page.

    Settings on the command line take precedence over the environment (EWE_ENGINE_GROUP__KEY), and this over the file.
    """
    if not _may_log_json(engine):
        print("phase reading settings", file=sys.stderr, flush=True)  # before anything that takes long to import
    from ewe.server.observability.log_lines import say, say_as
    from ewe.server.observability.start_report import report_choice
    from ewe.server.settings import resolve_settings

    for_server = {"host": host, "port": port, "served_model_name": served_model_name, "api_key_file": api_key_file}
    given = as_assignments({f"server.{key}": value for key, value in for_server.items()}) + engine.assignments
    chosen, server, unknown = resolve_settings(engine.model, engine.config, os.environ, given)
    notes = [f"warning: {name} is no setting and was left alone" for name in unknown]
    say_as(server.log_format)
    report_choice(chosen)
    preflight(chosen)
    if replicas > 1:
        command = ["serve", *([] if engine.model is None else [engine.model])]
        command += [] if engine.config is None else ["--config", str(engine.config)]
        serve_replicas(chosen, server, replicas, command, given, notes)
        return
    say("phase importing the server")
    with server_packages("ewe serve"):
        from ewe.server.process import serve as run

    from ewe.server.own_process.engine_process import EngineProcess, is_apart

    if is_apart(chosen, server):
        with EngineProcess(chosen, server) as process:
            run(server, process.open, notes)
        return

    def load(on_load: OnLoad) -> ServedEngine:
        from ewe.llm import LLM
        from ewe.server.engine_client.served_engine import LocalEngine

        return LocalEngine(LLM(config=chosen, on_load=on_load))

    run(server, load, notes)


def _may_log_json(engine: options.ServedEngineOptions) -> bool:
    """Whether the log is to be JSON, as far as that can be told before the settings are read."""
    stated = [*engine.assignments, f"log_format={os.environ.get('EWE_ENGINE_SERVER__LOG_FORMAT', '')}"]
    if engine.config is not None and engine.config.is_file():
        stated.append(engine.config.read_text(errors="replace"))
    return any(re.search(r"log_format\W+json", text, re.IGNORECASE) for text in stated)
