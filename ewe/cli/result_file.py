"""A JSONL file of results that a later run can continue."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from ewe.cli.findings_file import refuse_differences
from ewe.cli.prompts import Prompt
from ewe.errors import InvalidRequestError
from ewe.text.append_log import AppendLog
from ewe.text.jsonable import jsonable
from ewe.types import Generation

_OPENING = b'{"id": '


def record(prompt: Prompt, generation: Generation) -> str:
    """One result as one line of JSON: the prompt's id, its conversation if it is one, the generation without trace."""
    fields = jsonable(generation)
    del fields["trace"]  # --trace and --html hold it; here it would be most of the file
    request = {"id": prompt.id} | ({"messages": jsonable(prompt.messages)} if prompt.messages else {})
    return json.dumps({**request, **fields}, ensure_ascii=False)


def settings_path(path: Path) -> Path:
    """Where the settings of a file of results stand: beside it, so that each of its lines is a result."""
    return path.with_name(f"{path.name}.meta.json")


class ResultFile:
    """Results in the order of the prompts, each line written whole and flushed.

    `done` is how many prompts an earlier run finished. Opening repairs what a killed run left: a line without its end
    and answers of a prompt that lacks some are cut off. Raises InvalidRequestError, and changes nothing, if the file
    holds anything but results of these prompts under these settings.
    """

    def __init__(self, path: Path, prompts: Sequence[Prompt], copies: int, settings: Mapping[str, Any]) -> None:
        self.path = path
        check_settings(path, settings)
        self.done, keep = _scan(path, prompts, copies)
        note_settings(path, bool(keep), settings)
        self._log = AppendLog(path, keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def add(self, prompt: Prompt, generations: Sequence[Generation]) -> None:
        """Appends all answers of the next prompt."""
        self._log.append("".join(f"{record(prompt, generation)}\n" for generation in generations))


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Raises InvalidRequestError for a file that an earlier run wrote with other settings."""
    beside = settings_path(path)
    if not (path.exists() and path.stat().st_size and beside.exists()):
        return
    try:
        refuse_differences(path, json.loads(beside.read_text(encoding="utf-8"))["settings"], settings)
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError) as error:
        raise InvalidRequestError(f"{beside} is not what an earlier run wrote; choose another --output") from error


def note_settings(path: Path, has_results: bool, settings: Mapping[str, Any]) -> None:
    """Writes the settings beside a new file, and brings them to the disk before its first result.

    Raises InvalidRequestError for a file with results, but without settings beside it.
    """
    beside = settings_path(path)
    if has_results:
        if not beside.exists():
            raise InvalidRequestError(
                f"cannot go on with {path}: there is no {beside.name} beside it that says with which settings its "
                "results were written (older versions wrote none); choose another --output, or move the file away"
            )
        return
    settings_line = {"ewe": version("ewe-engine"), "settings": settings}
    with closing(AppendLog(beside, 0)) as log:
        log.append(json.dumps(settings_line, indent=2, ensure_ascii=False) + "\n")


def _scan(path: Path, prompts: Sequence[Prompt], copies: int) -> tuple[int, int]:
    """(finished prompts, bytes of the file that hold them)."""
    *lines, torn = path.read_bytes().split(b"\n") if path.exists() else [b""]
    for number, line in enumerate(lines):
        if number == len(prompts) * copies:
            raise _foreign(path, number + 1, "there are more results than prompts")
        _check(path, number, line, prompts[number // copies], number % copies)
    if torn[: len(_OPENING)] != _OPENING[: len(torn)]:  # only what began as a result is cut off
        raise _foreign(path, None, "its last line is no result")
    done = len(lines) // copies
    return done, sum(len(line) + 1 for line in lines[: done * copies])


def _check(path: Path, number: int, line: bytes, prompt: Prompt, index: int) -> None:
    try:
        head: Any = json.loads(line)
    except ValueError as error:
        raise _foreign(path, number + 1, "it is not JSON") from error
    expected = {"id": prompt.id, "prompt": prompt.text, "messages": prompt.messages or None, "index": index}
    for key, value in expected.items():
        if not isinstance(head, dict) or head.get(key) != jsonable(value):
            raise _foreign(path, number + 1, f"expected {key} {value!r}")


def _foreign(path: Path, line: int | None, reason: str) -> InvalidRequestError:
    place = f"{path}:{line}" if line else str(path)
    return InvalidRequestError(f"{place} is no result of these prompts ({reason}); choose another --output")
