"""Making again what is made from memories, where it is damaged: indexes, words, counts, vectors."""

from ewe.longterm.store.check import damaged_vectors, miscounted, words_are_whole
from ewe.longterm.store.lexical import Lexicon
from ewe.longterm.store.memory_session import MemorySession, VectorIndex


def mend(session: MemorySession, lexicon: Lexicon, vectors: VectorIndex) -> list[str]:
    """What was made again, or given up to be made again; memories and histories stay as they are."""
    done = []
    if session.damages():
        session.reindex()
        done.append("the database's indexes are made again from its tables")
    with session.transaction() as connection, session.seeing(None):
        if miscounted(session) or not words_are_whole(session):
            lexicon.rebuild(connection)
            done.append("the index of words is made again from the memories")
        damaged = damaged_vectors(session)
        if damaged:
            vectors.forget(connection, {scope for _, scope in damaged}, [number for number, _ in damaged])
            done.append(f"{len(damaged)} vectors are given up: 'ewe memory embed' makes them again")
    return done
