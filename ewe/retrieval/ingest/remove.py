"""Taking passages out of a datastore by id, by file or by source.

Owns: what each of them means. Knows the store and the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ewe.retrieval.ingest.ledger import Ledger
from ewe.retrieval.store import PassageStore


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
            removed += store.remove(found for (found,) in rows)
            if not rows:
                missing.append(f"the source {name}")
        for name in ids:
            count = store.remove([name])
            removed += count
            if not count:
                missing.append(f"the passage {name}")
    return removed, missing
