"""The servers of `served_step`: around an engine whose device answers at once, in this process or in one of its own.

The number of rows comes in the environment, where the server's process also tells the engine's what it is.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from benchmarks.common import build_tokenizer
from benchmarks.host_step import VOCABULARY, engine_config, stand_in_engine
from ewe import assembly
from ewe.config import Config
from ewe.config.loading import OnLoad
from ewe.engine.models import pretrained
from ewe.engine.startup.running_engine import Engine
from ewe.llm import LLM
from ewe.server.engine_client.served_engine import LocalEngine
from ewe.server.own_process import engine_child
from ewe.server.own_process.engine_process import EngineProcess
from ewe.server.process import serve
from ewe.server.settings import ServerSettings

ROWS, ENGINE = "EWE_BENCHMARK_ROWS", "EWE_BENCHMARK_ENGINE"
UNITS, UNIT_TOKENS, LONGEST = 8, 256, 1024


def served_config(rows: int) -> Config:
    """The engine's settings."""
    return engine_config(rows, UNITS, UNIT_TOKENS)


def build_stand_in(config: Config, components: Any, on_finish: Callable[..., None], *_: Any) -> Engine:
    """In place of `build_engine`."""
    rows = config.scheduler.places
    return stand_in_engine(config, UNITS * UNIT_TOKENS + rows * LONGEST, on_finish, components)


def main() -> None:
    """Serves until it is told to stop; --own: with the engine in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--own", action="store_true")
    is_own, config = parser.parse_args().own, served_config(int(os.environ[ROWS]))
    settings = ServerSettings(port=0, engine_process=is_own)
    if is_own:
        os.environ[ENGINE] = "1"  # for the process that this one starts
        with EngineProcess(config, settings, "benchmarks.served_step_server") as process:
            serve(settings, process.open)
        return

    def load(on_load: OnLoad) -> LocalEngine:
        return LocalEngine(LLM(config=config, on_load=on_load))

    serve(settings, load)


if __name__ == "__main__":
    tokenizer = build_tokenizer(VOCABULARY)  # the stand-in's, in whichever process makes texts of its tokens
    with (
        patch.object(assembly, "build_engine", build_stand_in),
        patch.object(pretrained, "load_tokenizer", lambda _: tokenizer),
    ):
        # The server's process speaks to the engine's over its standard input.
        engine_child.main() if ENGINE in os.environ else main()
