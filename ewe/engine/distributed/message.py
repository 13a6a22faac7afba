"""What rank 0 tells the workers, as bytes: a header in JSON, then arrays. Nothing is pickled."""

import json
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_SIZES = struct.Struct("<QQ")  # bytes of the header, bytes of the arrays
_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Message:
    """A command with values (anything that JSON holds) and arrays of numbers."""

    command: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)

    def pack(self) -> bytes:
        """The message as bytes, for `read_message`."""
        layout = [(name, array.dtype.str, array.shape) for name, array in self.arrays.items()]
        header = json.dumps({"command": self.command, "values": self.values, "arrays": layout}).encode()
        parts = [array.tobytes() + bytes(-array.nbytes % _ALIGNMENT) for array in self.arrays.values()]
        return b"".join((_SIZES.pack(len(header), sum(map(len, parts))), header, *parts))


def read_message(stream: BinaryIO) -> Message | None:
    """The next message of a stream; None if it ends before there is a whole one."""
    sizes = stream.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    header_size, body_size = _SIZES.unpack(sizes)
    header, body = stream.read(header_size), bytearray(stream.read(body_size))
    if len(header) < header_size or len(body) < body_size:
        return None
    message = json.loads(header)
    arrays: dict[str, Array] = {}
    begin = 0
    for name, dtype, shape in message["arrays"]:
        array = np.frombuffer(body, dtype, int(np.prod(shape)), begin).reshape(shape)
        arrays[name] = array
        begin += array.nbytes + -array.nbytes % _ALIGNMENT
    return Message(message["command"], message["values"], arrays)
