"""What a datastore holds, for people and programs.

Owns: which facts are told. Knows the store and the ledger.
"""

from __future__ import annotations

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
        by_source = store.query(
            "SELECT source, count(*) FROM passages GROUP BY source ORDER BY count(*) DESC, source LIMIT ?", (_SOURCES,)
        )
        return {
            "passages": len(store),
            "generation": store.generation,
            "checksum": store.checksum,
            "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
            "being_built": bool(settings.get("building")),
            "cut": {**rules.get("chunks", {}), **({"dedup": rules["dedup"]} if rules else {})},
            "read": asdict(ledger.counts()) if ledger else {},
            "largest_sources": dict(by_source),
            "indexes": {folder.name: _state(folder, store) for folder in sorted(store.index_dir("x").parent.glob("*"))},
            "unfinished_files": ledger.unfinished() if ledger else [],
            "problems": [str(problem) for problem in ledger.problems(_PROBLEMS)] if ledger else [],
        }


def _state(folder: Path, store: PassageStore) -> str:
    """What an index is, and whether it belongs to the passages as they are now."""
    try:
        manifest = read_manifest(folder)
    except DatastoreError as error:
        return str(error)
    fresh = (manifest.generation, manifest.checksum) == (store.generation, store.checksum)
    return f"{manifest.kind}, {'fresh' if fresh else 'to be made again'}"
