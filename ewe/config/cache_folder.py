"""Where files lie that can be made again: figures measured on this machine, for one."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder of EWE_CACHE_DIR, else `ewe` under XDG_CACHE_HOME, else `~/.cache/ewe`; it may not exist yet."""
    named = os.environ.get("EWE_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "ewe"
