"""From the address of a store to the store."""

from typing import TypeGuard
from urllib.parse import urlsplit

from ewe.errors import ConfigError
from ewe.retrieval.vector_stores.vector_store import TOKEN_VARIABLE, VectorStore

_WEB = ("http", "https")
_TRANSPORTS = {"milvus": ("file", *_WEB), "elasticsearch": _WEB, "opensearch": _WEB}
_FORMS = "milvus+file:FILE.db/COLLECTION, milvus+https://HOST:PORT/COLLECTION, elasticsearch+https://HOST:PORT/INDEX"


def is_address(source: object) -> TypeGuard[str]:
    """Whether this names a store outside this process."""
    return isinstance(source, str) and source.partition("+")[0] in _TRANSPORTS and ":" in source


def connect(uri: str) -> VectorStore:
    """The store at an address; no collection is made there.

    Raises ConfigError for an address that is none or holds secrets, DatastoreError for a server that cannot be reached.
    """
    try:
        parts = urlsplit(uri)
        has_more = parts.username is not None or bool(parts.query or parts.fragment)
        _ = parts.port  # raises for one that is no number
    except ValueError as error:
        raise ConfigError(f"this is no address of a datastore, which look like {_FORMS}: {error}") from error
    if has_more:
        raise ConfigError(
            f"the address of a datastore must hold no user, '?' or '#': {TOKEN_VARIABLE} in the environment "
            "is a token, or user:password"
        )
    kind, _, transport = parts.scheme.partition("+")
    place, _, name = parts.path.rpartition("/")
    server = place if transport == "file" else f"{transport}://{parts.netloc}{place}"
    if transport not in _TRANSPORTS.get(kind, ()) or not name or not (place if transport == "file" else parts.netloc):
        raise ConfigError(f"{uri!r} is no address of a datastore, which look like {_FORMS}")
    if kind == "milvus":
        from ewe.retrieval.vector_stores.milvus import MilvusStore

        return MilvusStore(server, name, uri)
    from ewe.retrieval.vector_stores.elasticsearch import ElasticsearchStore  # loads an HTTP client

    return ElasticsearchStore(server, name, uri, kind == "opensearch")
