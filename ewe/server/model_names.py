"""What clients may call the model.

Owns: these names, and that a folder's place on this machine is told to nobody. Knows no engine and no HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class ModelNames:
    """The names of one model. given: its hub id or folder; served: what it is called instead (none: as it is given).

    listed: the names that everybody is told, the first of them where a request names none.
    """

    def __init__(self, given: str, served: Sequence[str] = ()) -> None:
        folder = Path(given).expanduser()
        is_folder = folder.is_dir()
        last = (folder.resolve() if is_folder else folder).name
        shown = (last,) if is_folder else tuple(dict.fromkeys((given, last)))
        self.listed: tuple[str, ...] = tuple(dict.fromkeys(served)) or shown
        self._accepted = frozenset(self.listed if served else (*self.listed, given))

    def __contains__(self, name: str) -> bool:
        return name in self._accepted
