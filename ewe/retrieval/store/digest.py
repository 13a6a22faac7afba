"""Fingerprints of passages, and the checksum of a whole store that adding and removing keep up to date."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

from ewe.types import Passage

_SIZE = 16
_MODULUS = 1 << 256


def passage_digest(passage: Passage) -> bytes:
    """16 bytes over every field; two passages have the same ones only if they are equal.

    Raises UnicodeEncodeError for a text with half of a surrogate pair.
    """
    texts = (passage.id, passage.text, passage.title, passage.source, passage.url, passage.date)
    return _hashed(texts, struct.pack("<d", passage.veracity))


def content_digest(passage: Passage) -> bytes:
    """16 bytes over title, text and source: a store keeps one passage for each. Raises UnicodeEncodeError."""
    return _hashed((passage.title, passage.text, passage.source))


class Checksum:
    """The sum over all rows of sha256(rowid, digest), modulo 2^256.

    It names the same rows with the same passages whatever the order in which they came and went, so that a change
    costs no more than the rows it touches. It finds damage; it is no defence against somebody who forges passages.
    """

    def __init__(self, value: str = "0") -> None:
        self._sum = int(value, 16)

    def add(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Counts in rows of (rowid, digest)."""
        self._sum = (self._sum + sum(map(_row_number, rows))) % _MODULUS

    def remove(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Counts out rows of (rowid, digest)."""
        self._sum = (self._sum - sum(map(_row_number, rows))) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:064x}"


def _row_number(row: tuple[int, bytes]) -> int:
    rowid, digest = row
    return int.from_bytes(hashlib.sha256(struct.pack("<q", rowid) + digest).digest(), "little")


def _hashed(texts: Iterable[str], rest: bytes = b"") -> bytes:
    """A hash that keeps the texts apart: their lengths come first."""
    encoded = [text.encode("utf-8") for text in texts]
    lengths = struct.pack(f"<{len(encoded)}q", *map(len, encoded))
    return hashlib.blake2b(b"".join((lengths, *encoded, rest)), digest_size=_SIZE).digest()
