"""Looking for damage in a folder of encoded units, which can be made again."""

from fnmatch import fnmatch
from pathlib import Path

from ewe.engine.units.unit_files import SHARDS, open_shards, read_manifest
from ewe.engine.units.unit_folder import LocalFolder
from ewe.errors import PrecomputedError


def damaged_shards(folder: Path) -> dict[Path, str]:
    """The files of a folder that are not what was written, each with what is wrong; reads everything once.

    Raises PrecomputedError if the folder's own description cannot be read.
    """
    local = LocalFolder(folder)
    identity, damaged = read_manifest(local), dict[Path, str]()
    for name in (name for name in local.sizes() if fnmatch(name, SHARDS)):
        try:
            for unit in open_shards(local, identity, name).values():
                unit.read()
        except PrecomputedError as error:
            damaged[folder / name] = str(error)
    return damaged
