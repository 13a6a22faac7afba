"""The vectors of passages, encoded once: on disk they outlive a killed build and a changed datastore."""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import Progress, searched_text
from ewe.retrieval.store.sqlite_file import file_errors, whole_file
from ewe.types import Passage

_BATCH = 1024
_ENCODER = "encoder.json"
_PROBE = "In 1903 the prize went to three people, one of whom was born in Warsaw."
_RECORD = np.dtype([("key", "<u8"), ("check", "<u8")])  # of a text, and of the vector that stands for it
_SAME = 1e-2  # other machines and batch sizes move a vector by less, another model by more (as a share of its length)


class Vectors:
    """Vectors under the keys of their texts: float32 [n, dimension], in the order in which they were added.

    With a folder, every batch is on the disk before the next one is encoded, and what is there is used again if the
    encoder gives the same vector for a probe; a vector that was damaged is encoded again. Raises DatastoreError for a
    full disk and files that cannot be written.
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        self._encoder, self._folder = encoder, folder
        self._known: dict[int, int] = {}  # key of a text to the place of its vector
        self._count = 0
        self._parts: list[np.ndarray] = []
        if folder is not None:
            with file_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
                self._open(folder)

    def place(
        self, rows: Iterable[tuple[int, Passage]], total: int, progress: Progress | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Encodes what is missing; per (rowid, passage) the rowid and the place of its vector, int64 [n] each."""
        rowids: list[int] = []
        places: list[int] = []
        stream = iter(rows)
        while batch := list(islice(stream, _BATCH)):
            texts = [searched_text(passage) for _, passage in batch]
            keys = [_key(text) for text in texts]
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
            if new:
                self._append(list(new), self._encoder.encode_passages(list(new.values())))
            rowids += [rowid for rowid, _ in batch]
            places += [self._known[key] for key in keys]
            if progress is not None:
                progress(len(rowids), total)
        return np.array(rowids, dtype=np.int64), np.array(places, dtype=np.int64)

    def array(self) -> np.ndarray:
        """All vectors, float32 [n, dimension]; those of a folder are mapped, not read."""
        if self._folder is None or not self._count:
            return np.concatenate([np.zeros((0, self._encoder.dimension), dtype=np.float32), *self._parts])
        return _mapped(self._folder / "vectors.f32", self._encoder.dimension)

    def _append(self, keys: Sequence[int], vectors: np.ndarray) -> None:
        self._known.update(zip(keys, range(self._count, self._count + len(keys)), strict=True))
        self._count += len(keys)
        if self._folder is None:
            self._parts.append(vectors)
            return
        records = np.array([(key, _check(row)) for key, row in zip(keys, vectors, strict=True)], dtype=_RECORD)
        # The keys come last: a vector counts when its key is there.
        for name, data in (("vectors.f32", vectors), ("keys.u64", records)):
            with file_errors(self._folder / name), (self._folder / name).open("ab") as file:
                file.write(data.tobytes())
                file.flush()
                os.fsync(file.fileno())

    def _open(self, folder: Path) -> None:
        """Takes over what lies in the folder, or empties it if another encoder made it."""
        keys, vectors = folder / "keys.u64", folder / "vectors.f32"
        if not is_made_by(self._encoder, read_note(folder)):
            for path in (keys, vectors):
                path.unlink(missing_ok=True)
            with whole_file(folder / _ENCODER) as file:
                json.dump(encoder_note(self._encoder), file)
        for path in (keys, vectors):
            path.touch()
        row = 4 * self._encoder.dimension
        self._count = min(keys.stat().st_size // _RECORD.itemsize, vectors.stat().st_size // row)
        os.truncate(keys, _RECORD.itemsize * self._count)  # what a killed process left of a batch
        os.truncate(vectors, row * self._count)
        if self._count:
            stored = _mapped(vectors, self._encoder.dimension)
            records = np.fromfile(keys, dtype=_RECORD)
            self._known = {
                int(key): place for place, (key, check) in enumerate(records) if _check(stored[place]) == check
            }


def is_made_by(encoder: Encoder, note: Mapping[str, Any]) -> bool:
    """Whether a note of `encoder_note` is of an encoder whose vectors are the same.

    The encoder is only run if its files do not tell.
    """
    fingerprint = _fingerprint(encoder)
    if fingerprint and note.get("fingerprint") == fingerprint:
        return True
    try:
        stored = np.array(note.get("probe") or [], dtype=np.float64)
    except (ValueError, TypeError):
        return False
    return bool(stored.size) and is_same_probe(stored, probe_of(encoder))


def encoder_note(encoder: Encoder) -> dict[str, Any]:
    """What tells the encoder from others, as JSON: name, fingerprint and the vector of a probe."""
    return {"name": encoder.name, "fingerprint": _fingerprint(encoder), "probe": probe_of(encoder).tolist()}


def count_vectors(folder: Path) -> int:
    """How many vectors lie in `folder`, whoever made them."""
    keys = folder / "keys.u64"
    return keys.stat().st_size // _RECORD.itemsize if keys.exists() else 0


def _mapped(path: Path, dimension: int) -> np.ndarray:
    return np.asarray(np.memmap(path, dtype=np.float32, mode="r").reshape(-1, dimension))


def _check(vector: np.ndarray) -> int:
    return zlib.crc32(vector.tobytes())


def _fingerprint(encoder: Encoder) -> str:
    return str(getattr(encoder, "fingerprint", ""))


def probe_of(encoder: Encoder) -> np.ndarray:
    """The vector of a text that is always the same, float32 [dimension]: it tells encoders apart."""
    probe: np.ndarray = encoder.encode_passages([_PROBE])[0]
    return probe


def is_same_probe(stored: np.ndarray, probe: np.ndarray) -> bool:
    """Whether two vectors of `probe_of` are of encoders that give (nearly) the same vectors."""
    return stored.shape == probe.shape and bool(np.linalg.norm(stored - probe) <= _SAME * np.linalg.norm(probe))


def read_note(folder: Path) -> dict[str, Any]:
    """The `encoder_note` of the vectors in a folder; empty where none can be read."""
    try:
        note = json.loads((folder / _ENCODER).read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _key(text: str) -> int:
    """64 bits of a hash; two of ten million texts share one with a chance of about one in 400,000."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
