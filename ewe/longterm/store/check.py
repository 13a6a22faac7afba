"""Looking for damage in a whole store."""

from itertools import chain

from ewe.errors import DatastoreError, InvalidRequestError
from ewe.longterm.records import Scope
from ewe.longterm.store.memory_rows import (
    MEMORY_COLUMNS,
    REVISION_COLUMNS,
    checksum,
    memory_checksum,
    memory_of,
    revision_of,
)
from ewe.longterm.store.memory_session import MemorySession

# What has to be empty, and what it means if it is not.
_EXPECTATIONS = {
    "has lost a revision": """
        SELECT id FROM memories LEFT JOIN (
            SELECT memory, count(*) AS found, min(number) AS least, max(number) AS most FROM revisions GROUP BY memory
        ) AS counted ON memory = memories.number
        WHERE coalesce(found, 0) <> revisions OR coalesce(least, 0) <> 1 OR coalesce(most, 0) <> revisions""",
    "has another veracity or uncertainty than its last revision": """
        SELECT id FROM memories JOIN revisions
            ON revisions.memory = memories.number AND revisions.number = memories.revisions
        WHERE veracity_after <> veracity OR revisions.uncertainty <> memories.uncertainty""",
    "belongs to no scope": "SELECT id FROM memories WHERE scope NOT IN (SELECT number FROM scopes)",
    "is gone, but not its revisions": "SELECT memory FROM revisions WHERE memory NOT IN (SELECT number FROM memories)",
    "is gone, but not its words": "SELECT memory FROM postings WHERE memory NOT IN (SELECT number FROM memories)",
    "is counted in a scope wrongly": """
        SELECT scopes.number FROM scopes LEFT JOIN
            (SELECT scope, count(*) AS found FROM memories GROUP BY scope) AS counted ON scope = scopes.number
        WHERE coalesce(found, 0) <> memories""",
    "is counted as a word wrongly": """
        SELECT number FROM words LEFT JOIN
            (SELECT word AS posted, count(*) AS found FROM postings GROUP BY word) AS counted ON posted = number
        WHERE coalesce(found, 0) <> memories""",
    "has a vector without an encoder": """
        SELECT id FROM memories WHERE cell IS NOT NULL AND NOT EXISTS (SELECT 1 FROM encoder)""",
}


def problems(session: MemorySession) -> list[str]:
    """What is wrong with the file and its rows; reads everything once."""
    try:
        damages = [f"{session.name} is damaged: {message}" for message in session.damages()]
        if damages:
            return damages
        for meaning, statement in _EXPECTATIONS.items():
            for (name,) in session.query(f"{statement} LIMIT 20"):
                damages.append(f"{session.name} is damaged: {name!r} {meaning}")
        return damages + _invalid(session)
    except DatastoreError as error:
        return [str(error)]


def _invalid(session: MemorySession) -> list[str]:
    """Rows that are no valid memory or revision, or not those that were written."""
    found = []
    for number, stored, *values in chain.from_iterable(session.pages(f"checksum, {MEMORY_COLUMNS}")):
        try:
            memory = memory_of(Scope(), values)
            _compare(stored, memory_checksum(values), f"memory {memory.id!r}")
            for noted, *revision in session.query(
                f"SELECT checksum, {REVISION_COLUMNS} FROM revisions WHERE memory = ?",  # noqa: S608
                (number,),
            ):
                revision_of(memory.id, revision)
                _compare(noted, checksum(revision), f"a revision of memory {memory.id!r}")
        except (InvalidRequestError, ValueError, TypeError) as error:
            found.append(f"{session.name} is damaged: {error}")
    return found


def _compare(stored: int, found: int, name: str) -> None:
    """Raises ValueError for a row that is not the one that was written."""
    if stored != found:
        raise ValueError(f"{name} is not what was written: bytes have changed in place")
