"""Memories as a file of JSON lines, without vectors and words, which are made from the contents."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Scope
from ewe.longterm.store.adding import AddResult, History
from ewe.longterm.store.memory_rows import Deletion, memory_from_json, revision_from_json
from ewe.longterm.store.memory_store import MemoryStore
from ewe.longterm.store.reading import MemoryReader
from ewe.longterm.store.voices import new_voice, retold, spellings, voice_in
from ewe.retrieval.store.sqlite_file import file_errors, whole_file

_HEADER = {"format": "ewe-memories", "version": 1}


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of a file's memories; deleted_here: how many were left out because this store deleted them."""

    result: AddResult
    deleted_here: int


def export_jsonl(store: MemoryReader, path: str | Path, scopes: Sequence[Scope] | None = None) -> int:
    """Writes these scopes' memories (None: all), whole or not at all; how many. Raises DatastoreError."""
    path, count = Path(path), 0
    with whole_file(path, mode=0o600) as file, store.snapshot():
        _write(file, _HEADER)
        for memory in store.scan(scopes):
            history = [asdict(revision) for revision in store.history(memory.scope, memory.id)]
            _write(file, {"memory": asdict(memory), "revisions": history})
            count += 1
        for scope in [None] if scopes is None else scopes:
            for entry in store.deletions(scope):
                _write(file, {"deletion": asdict(entry)})
    return count


def import_jsonl(store: MemoryStore, path: str | Path) -> ImportReport:
    """Adds the memories of a file with their histories, and its log of deletions; again, if it was interrupted.

    What is there already stays as it is, and what this store deleted stays deleted. Raises InvalidRequestError naming
    the line that cannot be understood, and DatastoreError if the file cannot be read.
    """
    path, deletions, deleted_here = Path(path), list[Deletion](), 0

    def histories() -> Iterator[History]:
        nonlocal deleted_here
        with file_errors(path), path.open("rb") as file:
            for number, line in enumerate(file, 1):
                _, record = _line(path, number, line)
                if isinstance(record, Deletion):
                    deletions.append(record)
                elif record is not None and store.was_deleted(record[0]):
                    deleted_here += 1
                elif record is not None:
                    yield record

    store.deletions()  # an altered log would let in what was deleted: it has to be read whole before
    result = store.restore(histories())
    store.note_deletions(deletions)
    return ImportReport(result, deleted_here)


def erase_from_export(path: str | Path, user: str) -> int:
    """Takes a user's memories, deletions and name as a source out of a file, whole or not at all; how many memories.

    Raises InvalidRequestError naming the line that cannot be understood, DatastoreError if the file cannot be read or
    written.
    """
    path, count = Path(path), 0
    voices = dict.fromkeys(spellings(user), new_voice())
    with whole_file(path, mode=0o600) as file, path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            values, _ = _line(path, number, line)
            about = values.get("memory") or values.get("deletion") or {}
            if about.get("scope", {}).get("user", "") == user:
                count += "memory" in values
                continue
            if "memory" in values:
                _unname(values, voices)
            _write(file, values)
    return count


def _unname(values: dict[str, Any], voices: dict[str, str]) -> None:
    """Puts pseudonyms in the place of names in a memory and its revisions."""
    source = values["memory"].get("source", {})
    if source.get("id") in voices:
        source["id"] = voices[source["id"]]
    for revision in values["revisions"]:
        pieces = revision.get("evidence", [])
        revision["evidence"] = retold(pieces, {voice: voices.get(voice, voice) for voice in map(voice_in, pieces)})


def _line(path: Path, number: int, line: bytes) -> tuple[Any, History | Deletion | None]:
    """What a line of an export says, and what it holds. Raises InvalidRequestError for any other line."""
    try:
        values = json.loads(line)
        return values, _parsed(values, number)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        missing = " is missing" if isinstance(error, KeyError) else ""
        raise InvalidRequestError(f"{path}, line {number}: {error}{missing}") from error


def _parsed(values: Any, number: int) -> History | Deletion | None:
    """What a line holds; None for the header, which must come first."""
    if number == 1:
        if values != _HEADER:
            raise InvalidRequestError(f"the file must begin with {json.dumps(_HEADER)}")
        return None
    if "deletion" in values:
        entry = values["deletion"]
        scope = Scope(**entry["scope"])
        return Deletion(float(entry["at"]), scope, str(entry["memory_id"]), str(entry["reason"]))
    memory = memory_from_json(values["memory"])
    return memory, [revision_from_json(revision) for revision in values["revisions"]]


def _write(file: Any, values: dict[str, Any]) -> None:
    file.write(json.dumps(values, ensure_ascii=False) + "\n")
