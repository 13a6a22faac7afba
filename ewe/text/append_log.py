"""A file of lines that grows: what was appended is on the disk, and a later run goes on behind it."""

import os
from io import FileIO
from pathlib import Path


class AppendLog:
    """Appends to a file, of which the first `kept` bytes stay; nothing follows what the disk had no room for."""

    def __init__(self, path: Path, kept: int) -> None:
        self._file = FileIO(path, "a")
        self._file.truncate(kept)

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more: it was closed, or something could not be written whole."""
        return self._file.closed

    def append(self, text: str | bytes) -> None:
        """Returns when it is on the disk; a lone surrogate becomes a question mark. Raises OSError."""
        content = text.encode("utf-8", "replace") if isinstance(text, str) else text
        try:
            while content:
                content = content[self._file.write(content) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
