"""Where files lie that can be made again: figures measured on this machine, for one."""

import os
import uuid
from pathlib import Path


def cache_folder() -> Path:
    """The folder of EWE_CACHE_DIR, else `ewe` under XDG_CACHE_HOME, else `~/.cache/ewe`; it may not exist yet."""
    named = os.environ.get("EWE_CACHE_DIR")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "ewe"


def write_whole(path: Path, text: str) -> None:
    """Writes a file that other processes may read or write meanwhile: they see all of it, or what was there before.

    Makes its folder if there is none. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f".{uuid.uuid4().hex}")
    try:
        own.write_text(text, encoding="utf-8")
        own.replace(path)
    finally:
        own.unlink(missing_ok=True)
