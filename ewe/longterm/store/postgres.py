"""Memories in PostgreSQL: several writers, and rows that one tenant's transaction does not see of another."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from ewe.errors import DatastoreError
from ewe.longterm.records import Scope
from ewe.longterm.store.memory_session import MemorySession, VectorIndex
from ewe.longterm.store.postgres_connection import PostgresConnection, escaped, is_waiting, postgres_errors
from ewe.longterm.store.postgres_schema import AFTER_CHECKSUMS, BEFORE_CHECKSUMS, SCHEMA_VERSION, SCRIPT, TABLES
from ewe.longterm.store.postgres_vectors import PostgresVectors
from ewe.longterm.store.upgrades import add_checksums

_NOBODY, _ALL = "", '"all"'
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresSession(MemorySession):
    """The store behind a URL, in the current schema there; `MemorySession` says what its methods are for.

    Each process may write. Statements outside of `seeing` see no row of a tenant. A connection that was lost is made
    again once, where a transaction begins. Raises DatastoreError for a role that row-level security does not bind.
    """

    _connection: PostgresConnection

    def __init__(self, url: str | Path, read_only: bool) -> None:
        super().__init__(url, read_only)
        with self._errors():
            self._connection = PostgresConnection(self.name)
            try:
                _check(self.name, self._connection)
            except BaseException:
                self._connection.close()
                raise
        self._seen = _NOBODY

    @classmethod
    def exists(cls, url: str | Path) -> bool:
        """Whether a store is in the current schema of a database. Raises DatastoreError if it cannot be reached."""
        with postgres_errors(str(url)), closing(PostgresConnection(str(url))) as connection:
            return _has_store(connection)

    @classmethod
    def make(cls, url: str | Path) -> None:
        """Makes an empty store in the current schema of a database, whole or not at all."""
        with postgres_errors(str(url)), closing(PostgresConnection(str(url))) as connection:
            connection.execute("BEGIN")
            # Of two processes that make a store at once one waits, and finds that it is there.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 0))")
            if _has_store(connection):
                raise DatastoreError(f"{url} holds a memory store already: open it, or choose another schema")
            if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchall():
                connection.execute("CREATE EXTENSION vector")
            connection.execute(SCRIPT)
            connection.execute("COMMIT")

    @contextmanager
    def seeing(self, scopes: Sequence[Scope] | None) -> Iterator[None]:
        """Sets `ewe.scopes`, in the transaction that is open or in one of its own."""
        with self._lock, self._errors():
            # What was begun on a connection that is lost does not go on on another one.
            begun = self.in_transaction or self._views.total() > 0
            nested, before = begun or self._connection.in_transaction, self._seen
            if not nested:
                self._connection.begin("BEGIN")
            try:
                self._see(_ALL if scopes is None else _named(scopes))
                if self.in_transaction and scopes:
                    self._lock_scopes(scopes)
                yield
                if not nested:
                    self._connection.execute("COMMIT")
            finally:
                if nested and self._connection.goes_on:
                    self._see(before)
                elif not nested and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self._seen = before

    def lock_out(self) -> None:
        """Locks the table of scopes, which whoever writes looks into first."""
        self.query("LOCK TABLE scopes")

    def new_numbers(self, count: int) -> Sequence[int]:
        """The next numbers of the sequence; other writers' may lie between them."""
        rows = self.query("SELECT nextval('memory_numbers') FROM generate_series(1, ?::bigint)", (count,))
        return [int(number) for (number,) in rows]

    def vector_index(self) -> VectorIndex:
        """pgvector."""
        return PostgresVectors(self)

    def make_index(self, name: str, definition: str) -> None:
        """Makes an index on a connection of its own, so that nobody waits; nothing where another process is at it."""
        with self._errors(), closing(PostgresConnection(self.name)) as apart:
            lock = "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ?, 0))"
            if apart.execute(lock, (name,)).fetchall() == [(True,)]:
                apart.execute(f"DROP INDEX IF EXISTS {name}")  # what a process left that ended too early
                apart.execute(f"CREATE INDEX CONCURRENTLY {name} {definition}")

    def size(self) -> int:
        """The bytes of the tables with their indexes."""
        tables = ",".join(f"'{table}'" for table in TABLES)
        query = f"SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(ARRAY[{tables}]) AS name"  # noqa: S608
        return int(self.query(query)[0][0])

    def rewrite(self) -> bool:
        """Writes the tables again without dead rows; false if somebody reads for longer than locks are waited for."""
        try:
            for table in TABLES:
                self.query(f"VACUUM (FULL, ANALYZE) {table}")
        except DatastoreError as error:
            if is_waiting(error):
                return False
            raise
        return True

    def _begin(self, write: bool) -> None:
        self._connection.begin("BEGIN" if write else _SNAPSHOT)

    def _errors(self) -> AbstractContextManager[None]:
        return postgres_errors(self.name)

    def _see(self, scopes: str) -> None:
        if scopes != self._seen:
            self._connection.execute("SELECT set_config('ewe.scopes', ?, true)", (scopes,))
            self._seen = scopes

    def _lock_scopes(self, scopes: Sequence[Scope]) -> None:
        """Until the transaction ends; in one order, so that no two writers wait for each other."""
        names = sorted(_named([scope]) for scope in set(scopes))
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || name, 0)) "
            "FROM unnest(?::text[]) AS name",
            (names,),
        )


def _has_store(connection: PostgresConnection) -> bool:
    return bool(connection.execute("SELECT to_regclass(quote_ident(current_schema()) || '.state')").fetchall()[0][0])


def _check(url: str, connection: PostgresConnection) -> None:
    unbound = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    if connection.execute(unbound).fetchall() == [(True,)]:
        raise DatastoreError(f"{url}: row-level security does not bind this role: connect as one that is no superuser")
    if not _has_store(connection):
        raise DatastoreError(f"{url} holds no memory store: 'ewe memory add' makes a store")
    [(version,)] = connection.execute("SELECT version FROM state").fetchall()
    if version == 1:
        version = _upgrade(connection)
    if version != SCHEMA_VERSION:
        raise DatastoreError(f"{url} has schema version {version}, this engine reads {SCHEMA_VERSION}: update it")


def _upgrade(connection: PostgresConnection) -> int:
    """Brings a store of version 1 up to date, whole or not at all; its version then."""
    connection.execute("BEGIN")
    connection.execute("LOCK TABLE state")  # of two processes one waits, and finds that it is done
    [(version,)] = connection.execute("SELECT version FROM state").fetchall()
    if version == 1:
        connection.execute("SELECT set_config('ewe.scopes', ?, true)", (_ALL,))
        connection.execute(BEFORE_CHECKSUMS)
        add_checksums(connection)
        connection.execute(AFTER_CHECKSUMS)
        version = 2
    connection.execute("COMMIT")
    return int(version)


def _named(scopes: Iterable[Scope]) -> str:
    """Scopes as `ewe.scopes` holds them."""
    return json.dumps([{"user": escaped(scope.user), "agent": escaped(scope.agent)} for scope in scopes])
