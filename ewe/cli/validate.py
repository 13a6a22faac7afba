"""`ewe validate`: would a server start here with this file?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ewe.cli.config_checks import Found, look_at
from ewe.config import Config
from ewe.config.config_files import SERVER_GROUP, load_yaml
from ewe.errors import ConfigError


def validate(
    files: Annotated[list[Path], typer.Argument(help="Configuration files (YAML).", metavar="FILE...")],
    settings_only: Annotated[
        bool, typer.Option("--settings-only", help="Skip checks of files, stores, devices and ports of this machine.")
    ] = False,
) -> None:
    """Check configuration files before they are deployed: settings, files, stores, devices, ports and keys.

    Loads no weights, and changes nothing. Run it on the server's machine, as its user and with its environment.
    Exit code 1 if there is any problem.
    """
    failed = 0
    for file in files:
        findings = _findings(file, settings_only)
        failed += bool(findings.problems)
        print(f"{file}: {'not valid' if findings.problems else 'ok'}")
        for line in (*findings.problems, *(f"note: {note}" for note in findings.notes)):
            print(f"  {line}")
    if failed:
        raise typer.Exit(1)


def _findings(file: Path, settings_only: bool) -> Found:
    try:
        if SERVER_GROUP not in load_yaml(file):
            config = Config.from_yaml(file)
            return Found() if settings_only else look_at(config)
        from ewe.server.settings import resolve_settings

        config, server, unknown = resolve_settings(None, file, {} if settings_only else os.environ, ())
    except ConfigError as error:
        return Found(list(error.problems))
    if settings_only:
        return Found()
    notes = [f"{name} is no setting and was left alone" for name in unknown]
    return look_at(config, server, notes)
