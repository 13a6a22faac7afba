"""Looking for damage in a whole store."""

from __future__ import annotations

from ewe.errors import DatastoreError
from ewe.retrieval.store.database import FILE_NAME
from ewe.retrieval.store.digest import Checksum
from ewe.retrieval.store.manifest import check_files, read_manifest
from ewe.retrieval.store.reading import StoreReader


def problems(store: StoreReader) -> list[str]:
    """What is wrong with the file, its rows, its counters and its indexes; reads everything once."""
    return [*_file_problems(store), *_row_problems(store), *_index_problems(store)]


def _file_problems(store: StoreReader) -> list[str]:
    path = store.path / FILE_NAME
    try:
        found = [str(message) for (message,) in store.query("PRAGMA integrity_check(20)")]
    except DatastoreError as error:
        return [str(error)]
    return [f"{path} is damaged: {message}" for message in found if message != "ok"]


def _row_problems(store: StoreReader) -> list[str]:
    """Every row against its digest, then the count and the checksum of all of them."""
    checksum, count = Checksum(), 0
    try:
        for rowid, digest in store.scan_digests():
            checksum.add([(rowid, digest)])
            count += 1
        if count != len(store):
            return [f"{store.path / FILE_NAME} is damaged: it counts {len(store)} passages and holds {count}"]
        if str(checksum) != store.checksum:
            return [f"{store.path / FILE_NAME} is damaged: rows were changed, lost or renumbered"]
    except DatastoreError as error:
        return [str(error)]
    return []


def _index_problems(store: StoreReader) -> list[str]:
    """Indexes that are damaged or no longer belong to the passages."""
    found = []
    for folder in sorted(store.index_dir("x").parent.glob("*")):
        try:
            manifest = read_manifest(folder)
            check_files(folder, manifest)
        except DatastoreError as error:
            found.append(str(error))
            continue
        if (manifest.generation, manifest.checksum) != (store.generation, store.checksum):
            found.append(
                f"{folder} belongs to generation {manifest.generation}, the passages are at {store.generation}: "
                "it is made again at the next search"
            )
    return found
