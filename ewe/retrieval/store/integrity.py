"""Digests of passages, and whether a store and its indexes still hold what they say."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ewe.errors import DatastoreError
from ewe.retrieval.store.manifest import MANIFEST, check_files, read_manifest
from ewe.types import Passage

if TYPE_CHECKING:
    from ewe.retrieval.store.passage_store import PassageStore

_SIZE = 16
_PART = 500  # rows
_MODULUS = 1 << 256


def passage_digest(passage: Passage) -> bytes:
    """16 bytes over every field; two passages have the same ones only if they are equal.

    Raises UnicodeEncodeError for a text with half of a surrogate pair, TypeError for metadata that are no JSON.
    """
    texts = [passage.id, passage.text, passage.title, passage.source, passage.url, passage.date]
    if passage.metadata:
        texts.append(json.dumps(passage.metadata, sort_keys=True, ensure_ascii=False))
    return _hashed(texts, struct.pack("<d", passage.veracity))


def content_digest(passage: Passage) -> bytes:
    """16 bytes over title, text and source: a store keeps one passage for each. Raises UnicodeEncodeError."""
    return _hashed((passage.title, passage.text, passage.source))


def checksum_after(checksum: str, added: Iterable[tuple[int, bytes]], removed: Iterable[tuple[int, bytes]] = ()) -> str:
    """The checksum after rows of (rowid, digest) came and went: the sum over all of sha256(rowid, digest) mod 2^256.

    It names the same rows with the same passages in whatever order they came and went, so that a change costs no more
    than the rows it touches. It finds damage; it is no defence against somebody who forges passages.
    """
    return f"{(int(checksum, 16) + sum(map(_row_number, added)) - sum(map(_row_number, removed))) % _MODULUS:064x}"


def _row_number(row: tuple[int, bytes]) -> int:
    rowid, digest = row
    return int.from_bytes(hashlib.sha256(struct.pack("<q", rowid) + digest).digest(), "little")


def _hashed(texts: Iterable[str], rest: bytes = b"") -> bytes:
    """A hash that keeps the texts apart: their lengths come first."""
    encoded = [text.encode("utf-8") for text in texts]
    lengths = struct.pack(f"<{len(encoded)}q", *map(len, encoded))
    return hashlib.blake2b(b"".join((lengths, *encoded, rest)), digest_size=_SIZE).digest()


def problems(store: PassageStore) -> list[str]:
    """What is wrong with the file, its rows, its counters and its indexes; reads everything once."""
    return [*_file_problems(store), *_row_problems(store), *_index_problems(store)]


def _file_problems(store: PassageStore) -> list[str]:
    try:
        return [f"{store.file} is damaged: {message}" for message in store.damages()]
    except DatastoreError as error:
        return [str(error)]


def _row_problems(store: PassageStore) -> list[str]:
    """Every row against its digest, then the count and the checksum of all of them."""
    try:
        damaged = damaged_rows(store)
        if damaged:
            return [f"{store.file} is damaged at row {rowid}: restore it from a copy" for rowid in damaged]
        count, checksum, _ = counted_rows(store)
        if count != len(store):
            return [f"{store.file} is damaged: it counts {len(store)} passages and holds {count}"]
        if checksum != store.checksum:
            return [f"{store.file} is damaged: rows were changed, lost or renumbered"]
    except DatastoreError as error:
        return [str(error)]
    return []


def damaged_rows(store: PassageStore) -> list[int]:
    """The rows whose passage is not what was written, in order."""
    rowids = [rowid for (rowid,) in store.query("SELECT rowid FROM passages ORDER BY rowid")]
    parts = (rowids[start : start + _PART] for start in range(0, len(rowids), _PART))
    return [
        rowid for part in parts if not _are_intact(store, part) for rowid in part if not _are_intact(store, [rowid])
    ]


def counted_rows(store: PassageStore) -> tuple[int, str, int]:
    """How many rows there are, the checksum over all, and the last of them. Raises DatastoreError for a damaged one."""
    checksum, count, last = "0" * 64, 0, 0
    for rowid, digest, _ in store.scan_digests():
        checksum, count, last = checksum_after(checksum, [(rowid, digest)]), count + 1, rowid
    return count, checksum, last


def _are_intact(store: PassageStore, rowids: Sequence[int]) -> bool:
    try:
        store.rows(rowids)
    except DatastoreError:
        return False
    return True


def _index_problems(store: PassageStore) -> list[str]:
    problems = []
    for manifest_file in sorted(store.index_dir("x").parent.glob(f"*/{MANIFEST}")):
        folder = manifest_file.parent
        try:
            manifest = read_manifest(folder)
            check_files(folder, manifest)
        except DatastoreError as error:
            problems.append(str(error))
            continue
        if (manifest.generation, manifest.checksum) != (store.generation, store.checksum):
            problems.append(
                f"{folder} belongs to generation {manifest.generation}, the passages are at {store.generation}: "
                "it is made again at the next search"
            )
    return problems
