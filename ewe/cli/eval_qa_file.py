"""The file in which `ewe eval qa` keeps what it has found, for a run that goes on after an interruption.

Owns: the format (a line of settings, then a line per answer and per timing) and the check that the settings are the
same. Knows the records of `ewe.eval`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ewe.cli.run_settings import differences
from ewe.errors import InvalidRequestError
from ewe.eval.qa_report import Answer, Timing

_KINDS: dict[str, type[Answer] | type[Timing]] = {"answer": Answer, "timing": Timing}


class FindingsFile:
    """Answers and timings, and the file that they go to, if there is one.

    Raises InvalidRequestError, and changes nothing, for a file of something else or one written under other settings.
    A line that a killed run left without its end is cut off.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self.answers: list[Answer] = []
        self.timings: list[Timing] = []
        self._file = None
        if path is None:
            return
        kept = self._read(path, settings) if path.exists() and path.stat().st_size else 0
        self._file = path.open("ab")
        self._file.truncate(kept)
        if not kept:
            self._write({"settings": settings})

    def add(self, found: Answer | Timing) -> None:
        """Takes in one result, and brings it to the disk."""
        (self.answers if isinstance(found, Answer) else self.timings).append(found)  # type: ignore[arg-type]
        self._write({"answer" if isinstance(found, Answer) else "timing": asdict(found)})

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def _read(self, path: Path, settings: Mapping[str, Any]) -> int:
        """Takes in what the file holds; the bytes of its whole lines."""
        content = path.read_bytes()
        kept = content.rfind(b"\n") + 1
        try:
            first, *others = (json.loads(line) for line in content[:kept].splitlines())
            changed = list(differences(first["settings"], settings))
            for line in others:
                [(kind, values)] = line.items()
                found = _KINDS[kind](**values)
                (self.answers if isinstance(found, Answer) else self.timings).append(found)  # type: ignore[arg-type]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InvalidRequestError(f"{path} is not what `ewe eval qa` wrote; choose another --output") from error
        if changed:
            raise InvalidRequestError(
                f"{path} was written with other settings: {'; '.join(changed)}. Give the old settings to go on, or "
                "choose another --output"
            )
        return kept
