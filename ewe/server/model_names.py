"""What clients may call the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ewe.server.errors import RefusedError


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


def no_model(name: str, names: ModelNames) -> RefusedError:
    """The refusal of a name that is none of these."""
    here = " or ".join(map(repr, names.listed))
    return RefusedError(404, f"there is no model {name!r} here; {here} is", param="model", code="model_not_found")
