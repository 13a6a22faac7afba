"""A small collection of passages held in memory, read from and written to JSONL."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from ewe.errors import DatastoreError, InvalidRequestError
from ewe.types import Passage

_FIELDS = frozenset(field.name for field in fields(Passage))


class PassageList:
    """Any passages as a source, copies included; the first has row 1."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.passages = tuple(passages)

    def __len__(self) -> int:
        return len(self.passages)

    def rows(self, rowids: Sequence[int]) -> list[Passage]:
        """The passages of these rows, in this order."""
        return [self.passages[rowid - 1] for rowid in rowids]

    def scan(self, after_rowid: int = 0) -> Iterator[tuple[int, Passage]]:
        """(row, passage) of every row after `after_rowid`, in order."""
        yield from enumerate(self.passages[after_rowid:], after_rowid + 1)


class Datastore(PassageList):
    """Passages with unique ids, in the order given.

    The same text of the same source under the same title is kept once. Raises DatastoreError if one id stands for two
    different passages.
    """

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        by_id: dict[str, Passage] = {}
        seen: set[tuple[str, str, str]] = set()
        for passage in passages:
            known = by_id.get(passage.id)
            if known is not None and known != passage:
                raise DatastoreError(f"two different passages have the id {passage.id!r}")
            content = (passage.title, passage.text, passage.source)
            if content not in seen:
                seen.add(content)
                by_id[passage.id] = passage
        super().__init__(by_id.values())

    @classmethod
    def from_jsonl(cls, path: str | Path) -> Self:
        """The passages of a UTF-8 file with one JSON object per line; blank lines are skipped.

        Keys are the fields of `Passage`; `id` and `text` are required, keys that are none become metadata. Raises
        DatastoreError naming file and line for a missing file, bad encoding, bad JSON, missing keys, values of the
        wrong type and ids used twice.
        """
        lines: dict[str, tuple[int, Passage]] = {}
        for number, passage in _read(Path(path)):
            first, known = lines.setdefault(passage.id, (number, passage))
            if known != passage:
                raise DatastoreError(
                    f"{path}:{number}: id {passage.id!r} already stands for the passage of line {first}"
                )
        return cls(passage for _, passage in lines.values())


def _read(path: Path) -> Iterator[tuple[int, Passage]]:
    """(line number from 1, passage) of every line that is not blank."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatastoreError(f"cannot read the datastore {path}: {error.strerror}") from error
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            line = raw.decode("utf-8")
            if line.strip():
                yield number, _passage(json.loads(line))
        except UnicodeDecodeError as error:
            raise DatastoreError(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})") from error
        except json.JSONDecodeError as error:
            hint = "of files of other kinds 'ewe index build' makes a datastore"
            raise DatastoreError(f"{path}:{number}: not valid JSON: {error}; {hint}") from error
        except (InvalidRequestError, DatastoreError, RecursionError) as error:
            raise DatastoreError(f"{path}:{number}: {error}") from error


def _passage(values: Any) -> Passage:
    """The passage that one decoded line describes; raises DatastoreError or InvalidRequestError."""
    if not isinstance(values, dict):
        raise DatastoreError(f"expected a JSON object, found {type(values).__name__}")
    missing = [key for key in ("id", "text") if key not in values]
    if missing:
        raise DatastoreError(f"missing {' and '.join(missing)}")
    metadata = values.get("metadata", {})
    if not isinstance(metadata, dict):
        raise DatastoreError(f"metadata must be an object, found {metadata!r}")
    metadata = metadata | {key: value for key, value in values.items() if key not in _FIELDS}
    if not is_unicode(json.dumps(metadata, ensure_ascii=False)):
        raise DatastoreError("its metadata hold half of a surrogate pair")
    known = {key: values[key] for key in values if key in _FIELDS and key != "metadata"}
    for key, value in known.items():
        expected = (int, float) if key == "veracity" else str
        if not isinstance(value, expected) or isinstance(value, bool):
            raise DatastoreError(f"{key} must be a {'number' if key == 'veracity' else 'string'}, found {value!r}")
        if isinstance(value, str) and not is_unicode(value):
            raise DatastoreError(f"{key} holds half of a surrogate pair")
    return Passage(**known, metadata=metadata)


def is_unicode(text: str) -> bool:
    """Whether `text` can be encoded; JSON can smuggle in lone surrogates, on which tokenizers fail later."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
