"""Mending a datastore: what was altered is taken out, what can be is made again, and its file is read again."""

import shutil
from pathlib import Path

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.ledger import Ledger
from ewe.retrieval.store import PassageStore
from ewe.retrieval.store.integrity import counted_rows, damaged_rows
from ewe.retrieval.store.manifest import MANIFEST, check_files, read_manifest


def repair(path: Path) -> list[str]:
    """What was done, in words; nothing that is whole is changed. Raises DatastoreError for what cannot be opened."""
    with PassageStore.open(path, read_only=False) as store:
        done = []
        if store.damages():
            store.query("REINDEX")
            done.append(f"{store.file}: the database's indexes are made again from its tables")
        with store.transaction():
            done += _without_damaged_rows(store)
            done += _recounted(store)
        return done + _without_damaged_indexes(store)


def _without_damaged_rows(store: PassageStore) -> list[str]:
    """Takes out passages that are not what was written, and has the files that they came from read again."""
    rowids = damaged_rows(store)
    if not rowids:
        return []
    ledger = Ledger.of(store)
    labels = ledger.read_again(rowids) if ledger is not None else []
    for rowid in rowids:
        store.query("DELETE FROM passages WHERE rowid = ?", (rowid,))
    done = [f"{store.file}: the passage of row {rowid} is taken out" for rowid in rowids]
    return [*done, *(f"{label} is read again when it is added again: ewe index add" for label in labels)]


def _recounted(store: PassageStore) -> list[str]:
    """Makes counters and checksum those of the rows that are there."""
    count, checksum, last = counted_rows(store)
    if (count, checksum) == (len(store), store.checksum):
        return []
    store.query(
        "UPDATE state SET generation = generation + 1, passages = ?, checksum = ?, next_rowid = max(next_rowid, ?)",
        (count, checksum, last + 1),
    )
    return [f"{store.file}: counted again, {count} passages"]


def _without_damaged_indexes(store: PassageStore) -> list[str]:
    """Removes indexes that cannot be used; their vectors, each with its checksum, stay."""
    done = []
    for folder in sorted(store.index_dir("x").parent.glob("*")):
        if not _is_usable(folder, store):
            (folder / MANIFEST).unlink(missing_ok=True)
            for data in folder.glob("data-*"):
                shutil.rmtree(data)
            done.append(f"{folder}: the index is made again at the next search")
    return done


def _is_usable(folder: Path, store: PassageStore) -> bool:
    try:
        manifest = read_manifest(folder)
        check_files(folder, manifest)
    except DatastoreError:
        return False
    return (manifest.generation, manifest.checksum) == (store.generation, store.checksum)
