"""The file in which an evaluation keeps what it has found, for a run that goes on after an interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from ewe.cli.run_settings import differences
from ewe.errors import InvalidRequestError

Record = TypeVar("Record")


class FindingsFile(Generic[Record]):
    """Records, and the file that they go to, if there is one.

    kinds: the dataclasses that records may be of. Raises InvalidRequestError, and changes nothing, for a file of
    something else or one written under other settings. A line that a killed run left without its end is cut off.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any], kinds: Sequence[type[Record]]) -> None:
        self.records: list[Record] = []
        self._file = None
        if path is None:
            return
        kept = 0
        if path.exists() and path.stat().st_size:
            written_with, self.records, kept = read_findings(path, kinds)
            _refuse_differences(path, written_with, settings)
        self._file = path.open("ab")
        self._file.truncate(kept)
        if not kept:
            self._write({"settings": settings})

    def add(self, record: Record) -> None:
        """Takes in one record, and brings it to the disk."""
        self.records.append(record)
        self._write({type(record).__name__.lower(): asdict(record)})  # type: ignore[call-overload]

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def read_findings(path: Path, kinds: Sequence[type[Record]]) -> tuple[dict[str, Any], list[Record], int]:
    """The settings and records of a file, and the bytes of its whole lines; nothing and 0 where even the first is torn.

    Raises InvalidRequestError for a file of something else.
    """
    by_name = {kind.__name__.lower(): kind for kind in kinds}
    try:
        content = path.read_bytes()
        kept = content.rfind(b"\n") + 1
        if not kept and content.startswith(b'{"settings"'[: len(content)]):
            return {}, [], 0
        first, *others = (json.loads(line) for line in content[:kept].split(b"\n") if line)
        records = [by_name[kind](**values) for line in others for kind, values in line.items()]
        return dict(first["settings"]), records, kept
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidRequestError(f"{path} is not what this evaluation wrote; choose another file") from error


def _refuse_differences(path: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    changed = list(differences(old, new)) if old else []
    if changed:
        raise InvalidRequestError(
            f"{path} was written with other settings: {'; '.join(changed)}. Give the old settings to go on, or "
            "choose another --output"
        )
