"""The vectors of a store in PostgreSQL: a column of pgvector, searched exactly or by an index of a large scope."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ewe.longterm.store.ivf import WHOLE_LIMIT
from ewe.longterm.store.memory_session import Entry
from ewe.retrieval.store.session import Connection

if TYPE_CHECKING:
    from ewe.longterm.store.postgres import PostgresSession

_PREFIX = "vectors_of_"  # the name of an index, with the number of its scope
_MOST_DIMENSIONS = 2000  # of a vector in an index of pgvector
_MOST_LOOKED_AT = 1000  # what pgvector lets hnsw.ef_search be


class PostgresVectors:
    """Vectors beside their memories; every scope that is large has an index of its own, so that none hides another."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    def start(self, connection: Connection, dimension: int) -> None:
        """Takes the vectors of another encoder and their indexes."""
        for name, *_ in self._indexes():
            connection.execute(f"DROP INDEX {name}")
        connection.execute("UPDATE memories SET embedding = NULL")

    def write(self, connection: Connection, entries: Sequence[Entry], vectors: np.ndarray) -> None:
        """Another process may have changed a memory meanwhile, which stays without a vector then."""
        connection.executemany(
            "UPDATE memories SET embedding = ?::vector, cell = 0 WHERE number = ? AND content = ?",
            [(_text(vector), number, text) for (number, _, text), vector in zip(entries, vectors, strict=True)],
        )

    def search(self, query: np.ndarray, scopes: Sequence[int], top_k: int) -> list[tuple[int, float]]:
        """The best of each scope; the number of the scope stands in the statement, for the planner to see its index."""
        looked_at = min(max(2 * top_k, 100), _MOST_LOOKED_AT)
        self._session.query("SELECT set_config('hnsw.ef_search', ?, true)", (str(looked_at),))
        vector, column = _text(query), f"embedding::vector({len(query)})"
        hits: list[tuple[int, float]] = []
        for scope in scopes:
            hits += self._session.query(
                f"SELECT number, -({column} <#> ?::vector) FROM memories "  # noqa: S608
                f"WHERE scope = {scope:d} AND cell = 0 ORDER BY {column} <#> ?::vector "
                f"FETCH FIRST {top_k:d} ROWS WITH TIES",
                (vector, vector),
            )
        return heapq.nlargest(top_k, hits, key=lambda hit: (hit[1], hit[0]))

    def forget(self, connection: Connection, scopes: Iterable[int], memories: Sequence[int]) -> None:
        """Gives up the vectors of memories; a rewrite takes them from the disk."""
        connection.executemany(
            "UPDATE memories SET cell = NULL, embedding = NULL WHERE number = ?", [(number,) for number in memories]
        )

    def wipe(self) -> bool:
        """Nothing is left to do after a transaction."""
        return False

    def damaged(self, numbers: Sequence[int]) -> list[int]:
        """None that is known: the server's own checksums tell."""
        return []

    def arrange(self, scopes: Iterable[int]) -> None:
        """Gives each scope that has grown large an index."""
        known = {scope for _, scope, whole in self._indexes() if whole}
        for scope in scopes:
            with self._session.seeing(None):
                [(size, dimension)] = self._session.query(
                    "SELECT count(*), max(vector_dims(embedding)) FROM memories WHERE scope = ? AND cell = 0", (scope,)
                )
            if size > WHOLE_LIMIT and scope not in known and dimension <= _MOST_DIMENSIONS:
                self._session.make_index(
                    f"{_PREFIX}{scope:d}",
                    f"ON memories USING hnsw ((embedding::vector({dimension:d})) vector_ip_ops) "
                    f"WHERE scope = {scope:d} AND cell = 0",
                )

    def _indexes(self) -> list[tuple[str, int, bool]]:
        """Per index its name, the number of its scope, and whether it was made to the end."""
        rows = self._session.query(
            "SELECT relname, indisvalid FROM pg_class JOIN pg_index ON indexrelid = oid "
            "WHERE relnamespace = current_schema()::regnamespace AND relname ~ ?",
            (f"^{_PREFIX}[0-9]+$",),
        )
        return [(name, int(name.removeprefix(_PREFIX)), whole) for name, whole in rows]


def _text(vector: np.ndarray) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"
