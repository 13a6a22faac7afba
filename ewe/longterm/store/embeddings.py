"""Finding memories by their meaning: by vectors of their contents."""

from collections.abc import Sequence

import numpy as np

from ewe.errors import ConfigError
from ewe.longterm.records import Scope
from ewe.longterm.store.memory_session import MemorySession
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import Progress
from ewe.retrieval.vectors import is_same_probe, probe_of

_BATCH = 256


class Embeddings:
    """Makes the vectors of all memories and finds memories by them; `index`: where they lie."""

    def __init__(self, session: MemorySession) -> None:
        self._session = session
        self.index = session.vector_index()
        self._checked: tuple[Encoder, int] | None = None  # whose vectors are known to be those of which file

    def embed(self, encoder: Encoder, replace: bool = False, progress: Progress | None = None) -> int:
        """Gives every memory that has none a vector, 256 at a time, each lot committed; how many were given.

        Memories may be read and changed meanwhile. replace: all vectors there are, whoever made them, are made again.
        `progress` hears of (memories done, in all). Raises ConfigError if there are vectors of another encoder.
        """
        file = self._adopt(encoder, replace)
        with self._session.seeing(None):
            [(total,)] = self._session.query("SELECT count(*) FROM memories WHERE cell IS NULL")
        done = after = 0
        touched: set[int] = set()
        while rows := self._waiting(after):
            vectors = encoder.encode_passages([content for _, content, _ in rows])
            scopes = self._keep(rows, vectors, file)
            done += len(scopes)
            touched.update(scopes)
            after = rows[-1][0]
            if progress is not None:
                progress(done, max(total, done))
        self.index.arrange(sorted(touched))
        return done

    @property
    def exist(self) -> bool:
        """Whether any encoder has made vectors for this store."""
        return self._known() is not None

    def check(self, encoder: Encoder) -> None:
        """Raises ConfigError if there are vectors, and another encoder made them."""
        known = self._known()
        if known is None:
            return
        name, stored, file = known
        if self._checked is not None and self._checked[0] is encoder and self._checked[1] == file:
            return
        if not is_same_probe(stored, probe_of(encoder)):
            raise ConfigError(
                f"{self._session.name} has vectors of the encoder {name}, not of {encoder.name}: use that one, or "
                "make them again with 'ewe memory embed --replace'"
            )
        self._checked = (encoder, file)

    def search(self, query: np.ndarray, scopes: Sequence[int], top_k: int) -> list[tuple[int, float]]:
        """(number of a memory, inner product with `query`) of at most `top_k` memories in the scopes, best first.

        query: float32 [dimension]. Equal products: the newest first. Scopes with more than 20,000 vectors are searched
        approximately, which can miss some.
        """
        return self.index.search(query, scopes, top_k) if self.exist else []

    def _adopt(self, encoder: Encoder, replace: bool) -> int:
        """Makes the store this encoder's, if it has none or its vectors are to be made again; which one it is there."""
        known = self._known()
        if known is not None and not replace:
            self.check(encoder)
            return known[2]
        probe = probe_of(encoder).astype("<f4")
        with self._session.transaction() as connection, self._session.seeing(None):
            self._session.lock_out()
            [(file,)] = connection.execute(
                "INSERT INTO encoder VALUES (1, ?, ?, 1) ON CONFLICT (only_row) DO UPDATE "
                "SET name = excluded.name, probe = excluded.probe, file = encoder.file + 1 RETURNING file",
                (encoder.name, probe.tobytes()),
            ).fetchall()
            connection.execute("UPDATE memories SET cell = NULL")
            self.index.start(connection, len(probe))
        return int(file)

    def _waiting(self, after: int) -> list[tuple[int, str, Scope]]:
        """Numbers, contents and scopes of memories without a vector."""
        with self._session.seeing(None):
            rows = self._session.query(
                'SELECT memories.number, content, "user", agent FROM memories JOIN scopes '
                "ON scopes.number = memories.scope "
                "WHERE cell IS NULL AND memories.number > ? ORDER BY memories.number LIMIT ?",
                (after, _BATCH),
            )
        return [(number, content, Scope(user, agent)) for number, content, user, agent in rows]

    def _keep(self, rows: Sequence[tuple[int, str, Scope]], vectors: np.ndarray, file: int) -> list[int]:
        """Writes the vectors of those memories that still have the content that was encoded; the scope of each."""
        numbers = [number for number, *_ in rows]
        owners = list({owner for *_, owner in rows})
        with self._session.transaction() as connection, self._session.seeing(owners):
            # The memories first, as whoever takes over locks scopes first; two orders would be a deadlock.
            contents = {
                number: (content, scope)
                for number, content, scope in self._session.lookup(
                    "SELECT number, content, scope FROM memories WHERE number IN", numbers
                )
            }
            # Held until the end, so that no other encoder takes over meanwhile.
            if connection.execute("UPDATE encoder SET file = file WHERE file = ?", (file,)).rowcount == 0:
                return []
            places = [
                place for place, (number, content, _) in enumerate(rows) if contents.get(number, ("",))[0] == content
            ]
            entries = [(number, int(contents[number][1]), content) for number, content, _ in (rows[i] for i in places)]
            self.index.write(connection, entries, vectors[places])
        return [scope for _, scope, _ in entries]

    def _known(self) -> tuple[str, np.ndarray, int] | None:
        """The encoder's name, its probe (float32 [dimension]) and its number here, if there are vectors."""
        with self._session.seeing(()):
            rows = self._session.query("SELECT name, probe, file FROM encoder")
        return (str(rows[0][0]), np.frombuffer(rows[0][1], dtype="<f4"), int(rows[0][2])) if rows else None
