"""Looking for damage in a whole store, and making again what is made from memories: indexes, words, counts, vectors."""

from collections import Counter
from collections.abc import Iterator

from ewe.errors import DatastoreError
from ewe.longterm.store import lexical
from ewe.longterm.store.checksums import checksum
from ewe.longterm.store.intact_rows import (
    SELECT_MEMORY,
    intact_deletions,
    intact_history,
    intact_memories,
    intact_scopes,
    stored,
)
from ewe.longterm.store.memory_rows import DELETION_COLUMNS
from ewe.longterm.store.memory_session import MemorySession, VectorIndex

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


_COUNTS = ("is counted in a scope wrongly", "is counted as a word wrongly")
_PAGE = 1000


def problems(session: MemorySession) -> list[str]:
    """What is wrong with the file and its rows; reads everything once."""
    try:
        damages = [f"{session.file} is damaged: {message}" for message in session.damages()]
        for meaning, statement in _EXPECTATIONS.items():
            for (name,) in session.query(f"{statement} LIMIT 20"):
                damages.append(f"{session.file} is damaged: {name!r} {meaning}")
        damages += [*_rows(session), *_log(session), *_vectors(session)]
        if not damages and lexical.Lexicon(session).is_current() and not _words_are_whole(session):
            damages.append(f"{session.file} is damaged: memories are not found by all of their words")
        return damages
    except DatastoreError as error:
        return [str(error)]


def mend(session: MemorySession, lexicon: lexical.Lexicon, vectors: VectorIndex) -> list[str]:
    """What was made again, or given up to be made again; memories and histories stay as they are."""
    done = []
    if session.damages():
        session.reindex()
        done.append("the database's indexes are made again from its tables")
    with session.transaction() as connection, session.seeing(None):
        miscounted = any(session.query(f"{_EXPECTATIONS[count]} LIMIT 1") for count in _COUNTS)
        if miscounted or not _words_are_whole(session):
            lexicon.rebuild(connection)
            done.append("the index of words is made again from the memories")
        damaged = _damaged_vectors(session)
        if damaged:
            vectors.forget(connection, {scope for _, scope in damaged}, [number for number, _ in damaged])
            done.append(f"{len(damaged)} vectors are given up: 'ewe memory embed' makes them again")
    return done


def _words_are_whole(session: MemorySession) -> bool:
    """Whether the index of words is the one that the memories make, by the sum of checksums of all its rows."""
    expected = actual = 0
    for page in session.pages("scope, content"):
        for number, scope, content in page:
            tokens = lexical.terms(str(content))
            expected += sum(
                checksum((number, scope, word, times, len(tokens))) for word, times in Counter(tokens).items()
            )
    after: tuple[int, int] = (0, 0)
    select = "SELECT postings.word, memory, words.scope, words.word, times, length FROM postings JOIN words "
    page_after = f"ON number = postings.word WHERE (postings.word, memory) > (?, ?) ORDER BY 1, 2 LIMIT {_PAGE}"
    while rows := session.query(select + page_after, after):
        actual += sum(checksum((memory, scope, word, *counts)) for _, memory, scope, word, *counts in rows)
        after = rows[-1][:2]
    return expected == actual


def _damaged_vectors(session: MemorySession) -> list[tuple[int, int]]:
    """Number and scope of the memories whose vector is not what was written."""
    index, damaged = session.vector_index(), list[tuple[int, int]]()
    if not session.query("SELECT 1 FROM encoder"):
        return damaged
    for page in session.pages("scope, cell"):
        scopes = {number: scope for number, scope, cell in page if cell is not None}
        damaged += [(number, scopes[number]) for number in index.damaged(list(scopes))]
    return damaged


def _rows(session: MemorySession) -> Iterator[str]:
    """Memories and histories that are not those that were written."""
    after = 0
    select = f"{SELECT_MEMORY} WHERE memories.number > ? ORDER BY memories.number LIMIT {_PAGE}"
    while rows := stored(session.query(select, (after,))):
        for row in rows:
            try:
                intact_memories(session, [row])
                intact_history(session, row)
            except DatastoreError as error:
                yield str(error)
        after = rows[-1].number


def _log(session: MemorySession) -> Iterator[str]:
    try:
        intact_deletions(session, session.query(f"SELECT number, checksum, {DELETION_COLUMNS} FROM deletions"))  # noqa: S608
        intact_scopes(session, session.query('SELECT number, checksum, "user", agent, memories FROM scopes'))
    except DatastoreError as error:
        yield str(error)


def _vectors(session: MemorySession) -> Iterator[str]:
    for number, _ in _damaged_vectors(session):
        yield f"{session.file} has a damaged vector of memory number {number}: it can be made again"
