"""A connection to PostgreSQL that takes the statements that SQLite takes, and what its errors mean."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ewe.errors import ConfigError, DatastoreError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import TransactionStatus
    from psycopg.types.numeric import FloatLoader
    from psycopg.types.string import StrDumper, TextLoader
except ImportError as missing:  # psycopg itself, or the library libpq
    raise ConfigError("memories in PostgreSQL need psycopg: pip install 'ewe-engine[postgres]'") from missing

_CONNECT_S = 10
_WAIT_MS = 30_000  # for other writers' locks, as long as for another process that holds an SQLite file


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Any:
        """The text without U+0000, which PostgreSQL cannot hold: U+001A marks where one was."""
        return super().dump(escaped(obj))


class _TextLoader(TextLoader):
    def load(self, data: Any) -> Any:
        """The text as it was before `_TextDumper`."""
        text = super().load(data)
        return text.replace("\x1a0", "\0").replace("\x1a1", "\x1a") if isinstance(text, str) else text


def escaped(text: str) -> str:
    """A text as it lies in the database."""
    return text.replace("\x1a", "\x1a1").replace("\0", "\x1a0")


class PostgresConnection:
    """psycopg's connection as `sqlite3.Connection`: the same placeholders, and nothing begun that was not asked for."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = self._connect()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        """Runs a statement with "?" for values."""
        return self._connection.execute(statement.replace("?", "%s"), values or None)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> psycopg.Cursor[tuple[Any, ...]]:
        """Runs a statement once per row, all sent together."""
        cursor = self._connection.cursor()
        cursor.executemany(statement.replace("?", "%s"), rows)
        return cursor

    def begin(self, statement: str) -> None:
        """Begins a transaction; if the connection was lost since the last one, on a new connection."""
        try:
            self._connection.execute(statement)
        except psycopg.OperationalError:
            if not self._connection.broken:  # but closed by its owner, say
                raise
            self._connection = self._connect()
            self._connection.execute(statement)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and not ended, be it one that failed."""
        return self._status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @property
    def goes_on(self) -> bool:
        """Whether a transaction was begun and did not fail."""
        return self._status == TransactionStatus.INTRANS

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    @property
    def _status(self) -> TransactionStatus:
        return self._connection.info.transaction_status

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        patient = make_conninfo("", **{"connect_timeout": _CONNECT_S, **conninfo_to_dict(self._url)})
        connection = psycopg.connect(patient, autocommit=True)
        connection.adapters.register_dumper(str, _TextDumper)
        connection.adapters.register_loader("text", _TextLoader)
        connection.adapters.register_loader("numeric", FloatLoader)
        connection.execute(f"SET lock_timeout = {_WAIT_MS}")
        return connection


_ADVICE = {
    psycopg.errors.LockNotAvailable: "another process holds it: wait until that has ended",
    psycopg.errors.DeadlockDetected: "two writers waited for each other: run again",
    psycopg.errors.FeatureNotSupported: "the server lacks something: it needs PostgreSQL 13 or newer with pgvector",
    psycopg.errors.InsufficientPrivilege: "this role may not: it needs a schema of its own and the extension vector",
    psycopg.OperationalError: "it cannot be reached, or the connection was lost: what was committed is kept",
}


@contextmanager
def postgres_errors(url: str) -> Iterator[None]:
    """Turns errors of psycopg into a DatastoreError that names the URL and what to do."""
    try:
        yield
    except psycopg.Error as error:
        advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "unexpected error")
        reason = error.diag.message_primary or str(error).strip()
        raise DatastoreError(f"{url}: {advice} ({reason})") from error


def check_connection(url: str) -> None:
    """Raises DatastoreError unless the database can be reached."""
    with postgres_errors(url):
        PostgresConnection(url).close()


def is_waiting(error: DatastoreError) -> bool:
    """Whether another process held something for longer than was waited."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
