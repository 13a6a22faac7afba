"""`ewe validate`: are these configuration files right?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def validate(
    files: Annotated[list[Path], typer.Argument(help="Configuration files (YAML).", metavar="FILE...")],
) -> None:
    """Load configuration files and name every setting that is wrong. Exit code 1 if any is."""
    from ewe.config import Config
    from ewe.config_files import SERVER_GROUP, load_yaml
    from ewe.errors import ConfigError

    failed = 0
    for file in files:
        try:
            Config.from_yaml(file)
            if SERVER_GROUP in load_yaml(file):
                from ewe.server.settings import ServerSettings

                ServerSettings.from_yaml(file)
        except ConfigError as error:
            failed += 1
            print(f"{file}: not valid")
            for problem in error.problems:
                print(f"  {problem}")
        else:
            print(f"{file}: ok")
    if failed:
        raise typer.Exit(1)
