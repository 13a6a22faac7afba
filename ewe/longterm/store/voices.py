"""Who said something, without names in the rows of others: every scope has pseudonyms for the ids of sources.

A name stands in one row, which forgets it when its bearer is erased; whatever cites the pseudonym stays as it is.
"""

import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from urllib.parse import quote

from ewe.longterm.store.checksums import checksum
from ewe.longterm.store.memory_session import MemorySession
from ewe.retrieval.store.session import Connection

_FEEDBACK = re.compile(r"(feedback:[^:]*:)([^:]+)(:.*)", re.DOTALL)
"""A piece of evidence that names a voice, as `ewe.longterm.evidence` writes it."""


def voice_in(piece: str) -> str:
    """The id of the source that a piece of evidence names; empty for one that names none."""
    match = _FEEDBACK.fullmatch(piece)
    return match[2] if match else ""


def new_voice() -> str:
    """A pseudonym that nobody has."""
    return f"voice-{token_hex(8)}"


def retold(pieces: Iterable[str], voices: Mapping[str, str]) -> tuple[str, ...]:
    """Pieces of evidence with other ids of their sources."""
    matches = ((piece, _FEEDBACK.fullmatch(piece)) for piece in pieces)
    return tuple(parts[1] + voices[parts[2]] + parts[3] if parts else piece for piece, parts in matches)


def spellings(name: str) -> list[str]:
    """A name as it stands in sources and in evidence."""
    return sorted({name, quote(name, safe="")})


class Voices:
    """The pseudonyms of a store. `assign`, `leave` and `forget` belong inside a transaction."""

    def __init__(self, session: MemorySession) -> None:
        self._session = session

    def assign(self, connection: Connection, scope: int, names: Iterable[str]) -> dict[str, str]:
        """The pseudonyms of ids of sources in a scope; new ones where it has none. One that is forgotten is its own."""
        named = sorted(set(names) - {""})
        find = "SELECT name, pseudonym FROM voices WHERE scope = ? AND name IN"
        known = {"": "", **dict(self._session.lookup(find, named, (scope,)))}
        missing = [name for name in named if name not in known]
        forgotten = "SELECT pseudonym FROM voices WHERE scope = ? AND name IS NULL AND pseudonym IN"
        known |= {name: name for (name,) in self._session.lookup(forgotten, missing, (scope,))}
        new = {name: new_voice() for name in missing if name not in known}
        connection.executemany(
            "INSERT INTO voices VALUES (?, ?, ?, ?)",
            [(voice, scope, name, checksum((voice, scope, name))) for name, voice in new.items()],
        )
        return known | new

    def names(self, pseudonyms: Iterable[str]) -> dict[str, str]:
        """The ids behind pseudonyms; a forgotten one stands for itself. Raises DatastoreError for damage."""
        pseudonyms_of = sorted(set(pseudonyms) - {""})
        find = "SELECT pseudonym, scope, name, checksum FROM voices WHERE pseudonym IN"
        names = {"": ""}
        for voice, scope, name, noted in self._session.lookup(find, pseudonyms_of):
            if checksum((voice, scope, name)) == noted:
                names[voice] = voice if name is None else name
        for voice in pseudonyms_of:
            if voice not in names:
                raise self._session.damaged(f"the name behind {voice!r}")
        return names

    def leave(self, connection: Connection, scopes: Iterable[int]) -> None:
        """Drops the names of scopes that hold nothing any more."""
        connection.executemany(
            "DELETE FROM voices WHERE scope = ? AND EXISTS "
            "(SELECT 1 FROM scopes WHERE scopes.number = voices.scope AND memories = 0)",
            [(scope,) for scope in scopes],
        )

    def forget(self, connection: Connection, name: str) -> None:
        """Takes a name from all scopes; its pseudonyms stay, and nothing tells any more whose they were."""
        find = "SELECT pseudonym, scope FROM voices WHERE name IN"
        rows = self._session.lookup(find, spellings(name))
        connection.executemany(
            "UPDATE voices SET name = NULL, checksum = ? WHERE pseudonym = ?",
            [(checksum((voice, scope, None)), voice) for voice, scope in rows],
        )
