"""`ewe serve`: the engine behind HTTP."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options
from ewe.cli.engine import as_assignments, engine_assignments, server_packages
from ewe.cli.route import serve_replicas
from ewe.components import preflight
from ewe.loading import OnLoad

if TYPE_CHECKING:
    from ewe.llm import LLM

_server = partial(typer.Option, rich_help_panel="Server")


def serve(
    model: options.ModelArgument = None,
    host: Annotated[str | None, _server(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, _server(help="Port to listen on.", show_default="8000")] = None,
    served_model_name: Annotated[
        list[str] | None,
        _server(help="What clients call the model; repeatable.", show_default=False),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        _server(help="Keys that open the server, one a line.", show_default=False),
    ] = None,
    replicas: Annotated[int, _server(help="Servers to start, behind one router on the port.", min=1)] = 1,
    adapter: options.Adapter = None,
    datastore: options.Datastore = None,
    verifier: options.Verifier = None,
    policy: options.Policy = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Serve a model to OpenAI's clients, and to a browser.

    Settings are looked for on the command line, then in the environment (EWE_ENGINE_GROUP__KEY), then in the file.
    """
    print("phase reading settings", file=sys.stderr, flush=True)  # before anything that takes long to import
    from ewe.server.settings import resolve_settings
    from ewe.server.start_report import report_choice, say

    for_server = {"host": host, "port": port, "served_model_name": served_model_name, "api_key_file": api_key_file}
    first = engine_assignments(adapter, datastore, verifier, policy)
    first += as_assignments({f"server.{key}": value for key, value in for_server.items()})
    chosen, server, unknown = resolve_settings(model, config, os.environ, [*first, *(settings or ())])
    notes = [f"warning: {name} is no setting and was left alone" for name in unknown]
    report_choice(chosen)
    preflight(chosen)
    if replicas > 1:
        given = ["serve", *([] if model is None else [model]), *([] if config is None else ["--config", str(config)])]
        serve_replicas(chosen, server, replicas, given, [*first, *(settings or ())], notes)
        return
    say("phase importing the server")
    with server_packages("ewe serve"):
        from ewe.server.process import serve as run

    def load(on_load: OnLoad) -> LLM:
        from ewe.llm import LLM

        return LLM(config=chosen, on_load=on_load)

    run(server, load, notes)
