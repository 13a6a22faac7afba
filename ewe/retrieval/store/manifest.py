"""What an index was made from, and whether it may still be used."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ewe.errors import DatastoreError
from ewe.retrieval.store.sqlite_file import file_errors, whole_file

if TYPE_CHECKING:
    from ewe.retrieval.store.passage_store import PassageStore

MANIFEST = "manifest.json"


class IndexStale(DatastoreError):  # noqa: N818 - it asks for a new index, it is no failure
    """An index is missing, damaged, or was made from other passages or with other parameters: make it again."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One index: its kind, the store it was made from, its parameters and the sha256 of each file.

    data: the folder of the files, beside the manifest. files: path in that folder to 64 hexadecimal digits.
    """

    kind: str
    generation: int
    checksum: str
    data: str
    parameters: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@contextmanager
def publish_index(
    folder: Path, kind: str, source: PassageStore, parameters: Mapping[str, Any] | None = None
) -> Iterator[Path]:
    """Yields an empty folder for the files of a new index, and puts it in the place of the old one at the end.

    If anything fails or the process dies, the old index stays as it was. Call it inside `source.snapshot()`, so that
    the generation belongs to the passages that were read. Parameters must be JSON. Raises DatastoreError.
    """
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / f"data-{uuid4().hex[:12]}"
        data.mkdir()
        try:
            generation, checksum = source.generation, source.checksum
            yield data
            paths = sorted(path for path in data.rglob("*") if path.is_file())
            files = {path.relative_to(data).as_posix(): _sha256(path, sync=True) for path in paths}
            manifest = Manifest(kind, generation, checksum, data.name, dict(parameters or {}), files)
            # From here on the new index is the one that counts.
            with whole_file(folder / MANIFEST) as file:
                json.dump(asdict(manifest), file, indent=2, sort_keys=True)
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise
        _remove_others(folder, keep=data)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index. Raises IndexStale if there is none or it cannot be understood."""
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_bytes())
        manifest = Manifest(**{item.name: values[item.name] for item in fields(Manifest)})
        names = [manifest.data, *manifest.files]
        parts = [part for name in names for part in Path(name).parts]
        if (
            manifest.data != Path(manifest.data).name
            or ".." in parts
            or any(Path(name).is_absolute() for name in names)
        ):
            raise ValueError("it names files outside its folder")
    except FileNotFoundError as error:
        raise IndexStale(f"{folder} holds no index") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexStale(f"{path} is damaged ({error}): the index is to be made again") from error
    return manifest


def fresh_index(folder: Path, kind: str, source: PassageStore, parameters: Mapping[str, Any] | None = None) -> Path:
    """The folder of the files of an index that belongs to `source` as it is now, every file checked.

    Raises IndexStale, saying why, if it has to be made again. Reads all files once.
    """
    manifest = read_manifest(folder)
    stored = (manifest.kind, manifest.parameters, manifest.generation, manifest.checksum)
    # Through JSON, as the manifest went: tuples are lists there.
    requested = (kind, json.loads(json.dumps(dict(parameters or {}))), source.generation, source.checksum)
    for name, before, now in zip(("kind", "parameters", "generation", "checksum"), stored, requested, strict=True):
        if before != now:
            raise IndexStale(f"{folder} was made with another {name} ({before}, now {now})")
    check_files(folder, manifest)
    return folder / manifest.data


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raises IndexStale naming the first file of an index that is missing or not what was written."""
    for name, expected in manifest.files.items():
        path = folder / manifest.data / name
        try:
            actual = _sha256(path)
        except OSError as error:
            raise IndexStale(f"{path} cannot be read ({error.strerror}): the index is to be made again") from error
        if actual != expected:
            raise IndexStale(f"{path} is damaged (its checksum is wrong): the index is to be made again")


def _sha256(path: Path, sync: bool = False) -> str:
    """The checksum of a file, after bringing it to the disk if `sync`."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if sync:
            os.fsync(file.fileno())
    return digest


def _remove_others(folder: Path, keep: Path) -> None:
    """Files of older indexes, and what a killed process left; readers that have them open may go on."""
    for path in folder.iterdir():
        if path.name.startswith("data-") and path != keep:
            shutil.rmtree(path, ignore_errors=True)
