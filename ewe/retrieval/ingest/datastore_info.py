"""What a datastore holds, and taking passages out of it by id, file or source."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ewe.errors import DatastoreError
from ewe.retrieval.ingest.ledger import Ledger
from ewe.retrieval.store import PassageStore, read_manifest

_PROBLEMS = 100
_SOURCES = 20


def info(path: Path) -> dict[str, Any]:
    """Size, generation, the rules by which files were cut, their counts and problems, sources and indexes.

    Raises DatastoreError if there is no datastore.
    """
    with PassageStore.open(path) as store, store.snapshot():
        ledger = Ledger.of(store)
        settings = ledger.settings() if ledger else {}
        rules = settings.get("rules", {})
        return {
            "passages": len(store),
            "generation": store.generation,
            "checksum": store.checksum,
            "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
            "being_built": bool(settings.get("building")),
            "cut": {**rules.get("chunks", {}), **({"dedup": rules["dedup"]} if rules else {})},
            "read": asdict(ledger.counts()) if ledger else {},
            "largest_sources": _largest_sources(store),
            "indexes": {folder.name: _state(folder, store) for folder in sorted(store.index_dir("x").parent.glob("*"))},
            "unfinished_files": ledger.unfinished() if ledger else [],
            "problems": [str(problem) for problem in ledger.problems(_PROBLEMS)] if ledger else [],
        }


def _largest_sources(store: PassageStore) -> dict[str, int]:
    """How many passages there are of each; names are read from passages, which have digests, counts are not checked."""
    select = "SELECT min(rowid), count(*) FROM passages GROUP BY source ORDER BY count(*) DESC, source LIMIT ?"
    rows = store.query(select, (_SOURCES,))
    named = store.rows([rowid for rowid, _ in rows])
    return {passage.source: count for passage, (_, count) in zip(named, rows, strict=True)}


def _state(folder: Path, store: PassageStore) -> str:
    try:
        manifest = read_manifest(folder)
    except DatastoreError as error:
        return str(error)
    fresh = (manifest.generation, manifest.checksum) == (store.generation, store.checksum)
    return f"{manifest.kind}, {'fresh' if fresh else 'to be made again'}"


def remove(
    path: Path, ids: Sequence[str] = (), files: Sequence[str] = (), sources: Sequence[str] = ()
) -> tuple[int, list[str]]:
    """Removes everything in one transaction; the number of passages, and the names that were not there.

    A file that is named is forgotten, so that adding it again reads it again. Passages that were removed by id or
    source do not come back when their unchanged file is added again. Raises DatastoreError.
    """
    removed, missing = 0, []
    with PassageStore.open(path, read_only=False) as store, store.transaction():
        ledger = Ledger(store)
        for name in files:
            count = ledger.forget(name)
            if count is None and (count := ledger.forget(str(Path(name).resolve()))) is None:
                missing.append(f"the file {name}")
            removed += count or 0
        for name in sources:
            rows = store.query("SELECT id FROM passages WHERE source = ?", (name,))
            removed += store.remove(passage_id for (passage_id,) in rows)
            if not rows:
                missing.append(f"the source {name}")
        for name in ids:
            count = store.remove([name])
            removed += count
            if not count:
                missing.append(f"the passage {name}")
    return removed, missing
