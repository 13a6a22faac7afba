"""The walk through the code in docs/architecture.md: its files exist, and each is imported by one before it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALK = re.findall(r"^\d+\. `(ewe/[\w/]+\.py)`", TEXT, re.MULTILINE)
FOUND_BY_NAME = {"ewe/policies/ewe.py": "ewe.policies.ewe:ewe"}  # in the registry


def imports(path: str, module: str) -> bool:
    """Whether the file imports the module, or something of it."""
    package, _, name = module.rpartition(".")
    code = (ROOT / path).read_text(encoding="utf-8")
    one = rf"(?:from|import) {re.escape(module)}\b|from {re.escape(package)} import (?:\([^)]*|.*)\b{name}\b"
    return re.search(one, code) is not None


def test_a_walk_has_at_most_twelve_files() -> None:
    assert 8 <= len(WALK) <= 12
    assert len(set(WALK)) == len(WALK)


def test_each_file_of_the_walk_is_imported_by_one_before_it() -> None:
    for place, path in enumerate(WALK[1:], 1):
        if path in FOUND_BY_NAME:
            registry = (ROOT / "ewe" / "config" / "registry.py").read_text(encoding="utf-8")
            assert f'"{FOUND_BY_NAME[path]}"' in registry
            continue
        module = path.removesuffix(".py").replace("/", ".")
        assert any(imports(before, module) for before in WALK[:place]), path


def test_the_files_and_rooms_that_the_page_names_exist() -> None:
    named = re.findall(r"`(ewe/[\w/]+(?:\.py)?)`", TEXT)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
    rooms = {path.name for path in (ROOT / "ewe").iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    inner = {
        f"{parent}/{path.parent.name}"
        for parent in ("engine", "server")
        for path in (ROOT / "ewe" / parent).glob("*/__init__.py")
    }
    assert [room for room in sorted(rooms | inner) if f"`{room}`" not in TEXT] == []
