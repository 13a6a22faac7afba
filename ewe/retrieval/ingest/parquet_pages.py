"""How large the pages of a Parquet file are, as their headers say: each is unpacked whole, whatever its file's size."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from ewe.retrieval.ingest.documents import UnreadableError

_Fields = dict[int, Any]
_TYPE, _UNPACKED, _PACKED = 1, 2, 3  # fields of a page's header: numbers, sizes in bytes without the header
_DATA_HEADERS, _NUM_VALUES = (5, 8), 1  # of either version of the format; a field in them
_DEEPEST = 8  # structs in structs


def largest_page(file: BinaryIO, chunk: Any) -> int:
    """Unpacked bytes of the largest page of a `pyarrow.parquet.ColumnChunkMetaData`, found as Arrow finds pages.

    Raises UnreadableError for what is no header of a page.
    """
    return max(_page_sizes(file, chunk), default=0)


def _page_sizes(file: BinaryIO, chunk: Any) -> Iterator[int]:
    place = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < place:
        place = chunk.dictionary_page_offset
    end, values = place + chunk.total_compressed_size, 0
    while place < end and values < chunk.num_values:
        file.seek(place)
        header = _struct(file)
        unpacked, packed = header.get(_UNPACKED), header.get(_PACKED)
        if not isinstance(unpacked, int) or not isinstance(packed, int) or min(unpacked, packed) < 0:
            raise _damaged()
        yield unpacked
        values += sum(header[name].get(_NUM_VALUES, 0) for name in _DATA_HEADERS if isinstance(header.get(name), dict))
        place = file.tell() + packed


def _struct(file: BinaryIO, depth: int = 0) -> _Fields:
    """The fields of a struct of Thrift's compact protocol by number."""
    if depth == _DEEPEST:
        raise _damaged()
    fields: _Fields = {}
    number = 0
    while kind := _byte(file):
        number = number + (kind >> 4) if kind >> 4 else _signed(file)
        fields[number] = _value(file, kind & 15, depth)
    return fields


def _value(file: BinaryIO, kind: int, depth: int) -> Any:
    """A number or a struct; None for what pages have, but nobody here asks for."""
    match kind:
        case 1 | 2:  # a truth value, which is its own kind
            return None
        case 3:
            return _byte(file)
        case 4 | 5 | 6:
            return _signed(file)
        case 7:
            file.seek(8, 1)
            return None
        case 8:
            file.seek(_unsigned(file), 1)
            return None
        case 12:
            return _struct(file, depth + 1)
    raise _damaged()  # no header of a page has lists or maps


def _signed(file: BinaryIO) -> int:
    number = _unsigned(file)
    return number >> 1 ^ -(number & 1)


def _unsigned(file: BinaryIO) -> int:
    number = 0
    for shift in range(0, 64, 7):
        byte = _byte(file)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise _damaged()


def _byte(file: BinaryIO) -> int:
    byte = file.read(1)
    if not byte:
        raise _damaged()
    return byte[0]


def _damaged() -> UnreadableError:
    return UnreadableError("it is damaged or no Parquet file (a page without a header)")
