"""A PostgreSQL server with pgvector for the tests of one process: the wheel `pgserver` brings its programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import distribution
from itertools import count
from pathlib import Path
from typing import Any

import pytest

_STARTS_WITHIN = 60.0
# Without autovacuum, whose snapshots hold on to deleted rows for a moment.
_SETTINGS = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=40", "autovacuum=off")


class PostgresServer:
    """Listens on a socket in a folder of its own; its role `ewe` is no superuser.

    Raises ImportError, LookupError or OSError where there can be none.
    """

    def __init__(self, folder: Path) -> None:
        import psycopg  # noqa: F401

        # Nothing of pgserver's own code is wanted, which makes folders when it is imported.
        self._programs = Path(str(distribution("pgserver").locate_file("pgserver/pginstall/bin")))
        self.folder, self._numbers = folder, count(1)
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, "nobody")
            self._user = {"user": "nobody", "group": os.stat(folder).st_gid, "extra_groups": []}
        self._run("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
                  "--no-sync", "--no-instructions")  # fmt: skip
        self.start()
        self.execute("CREATE ROLE ewe LOGIN", "CREATE DATABASE ewe OWNER ewe", database="postgres")
        self.execute("CREATE EXTENSION vector")

    def url(self, schema: str, user: str = "ewe") -> str:
        """The URL of a schema."""
        return f"postgresql://{user}@/ewe?host={self.folder}&options=-csearch_path%3D{schema}%2Cpublic"

    def new_schema(self) -> str:
        """The URL of an empty schema."""
        name = f"store{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name} AUTHORIZATION ewe")
        return self.url(name)

    def execute(self, *statements: str, database: str = "ewe") -> list[tuple[Any, ...]]:
        """Runs statements as the superuser, whom no policy binds; what the last one found."""
        import psycopg

        url = f"postgresql://postgres@/{database}?host={self.folder}"
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def files(self, url: str) -> bytes:
        """What the files of a schema's tables and indexes hold."""
        schema = url.partition("search_path%3D")[2].partition("%2C")[0]
        rows = self.execute(
            "CHECKPOINT",
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relkind IN ('r', 'i', 't') AND (relnamespace = "
            f"'{schema}'::regnamespace OR oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = "
            f"'{schema}'::regnamespace))",
        )
        return b"".join((self.folder / "data" / path).read_bytes() for (path,) in rows)

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        import psycopg

        settings = [part for setting in ("listen_addresses=", *_SETTINGS) for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
            self._process = subprocess.Popen([*command, *settings], cwd="/", stdout=log, stderr=log, **self._user)
        deadline = time.monotonic() + _STARTS_WITHIN
        while True:
            try:
                self.execute("SELECT 1", database="postgres")
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise OSError(f"{error}: {(self.folder / 'log').read_text()}") from error
                time.sleep(0.01)

    def stop(self) -> None:
        """Ends all connections and the server at once; what was committed is found again by the next one."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments], cwd="/", capture_output=True, text=True, **self._user
        )
        if done.returncode:
            raise OSError(f"{program} failed: {done.stderr}")


def started() -> Iterator[PostgresServer]:
    """A server until the tests have ended. Skips whatever asks for it where there can be none.

    It needs psycopg and pgserver, and where tests run as root a user "nobody" who may read pgserver.
    """
    with ExitStack() as made:
        try:
            # Not in pytest's folder: the path of a socket has 107 bytes at most.
            folder = tempfile.TemporaryDirectory(prefix="ewe-pg-", dir="/tmp", ignore_cleanup_errors=True)
            server = PostgresServer(Path(made.enter_context(folder)))
        except (ImportError, LookupError, OSError) as error:
            pytest.skip(f"no PostgreSQL can be started here: {error}")
        yield server
        server.stop()
