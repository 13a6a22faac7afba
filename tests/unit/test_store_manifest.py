"""Index manifests: what is fresh, what is refused by name, and that publishing is all or nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from ewe.retrieval.store import IndexStale, PassageStore, fresh_index, publish_index, read_manifest
from ewe.types import Passage


@dataclass
class Source:
    generation: int = 3
    checksum: str = "ab" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "indexes" / "dense"


def publish(folder: Path, source: Source, content: bytes = b"vectors", **parameters: object) -> None:
    with publish_index(folder, "dense", source, parameters) as data:
        (data / "sub").mkdir()
        (data / "sub" / "index.bin").write_bytes(content)


def test_an_index_is_fresh_until_anything_it_was_made_from_changes(folder: Path) -> None:
    publish(folder, Source(), shape=(1, 2), encoder="m")
    data = fresh_index(folder, "dense", Source(), {"encoder": "m", "shape": (1, 2)})
    assert (data / "sub" / "index.bin").read_bytes() == b"vectors"
    with pytest.raises(IndexStale, match="another generation"):
        fresh_index(folder, "dense", Source(generation=4), {"shape": [1, 2], "encoder": "m"})
    with pytest.raises(IndexStale, match="another checksum"):
        fresh_index(folder, "dense", Source(checksum="00"), {"shape": [1, 2], "encoder": "m"})
    with pytest.raises(IndexStale, match="another parameters"):
        fresh_index(folder, "dense", Source(), {"shape": [1, 2], "encoder": "other"})
    with pytest.raises(IndexStale, match="another kind"):
        fresh_index(folder, "bm25", Source(), {"shape": [1, 2], "encoder": "m"})


def test_missing_and_damaged_files_are_named(folder: Path) -> None:
    with pytest.raises(IndexStale, match="dense holds no index"):
        fresh_index(folder, "dense", Source())
    publish(folder, Source())
    path = folder / read_manifest(folder).data / "sub" / "index.bin"
    path.write_bytes(b"vectorz")
    with pytest.raises(IndexStale, match=r"index\.bin is damaged"):
        fresh_index(folder, "dense", Source())
    path.unlink()
    with pytest.raises(IndexStale, match=r"index\.bin cannot be read"):
        fresh_index(folder, "dense", Source())


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"kind": "dense"}', "\x00"],
)
def test_a_damaged_manifest_is_named(folder: Path, content: str) -> None:
    publish(folder, Source())
    (folder / "manifest.json").write_text(content)
    with pytest.raises(IndexStale, match=r"manifest\.json is damaged"):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("key", "value"), [("data", "../other"), ("files", {"../../secret": "0"}), ("files", {"/etc/passwd": "0"})]
)
def test_a_manifest_cannot_point_outside_its_folder(folder: Path, key: str, value: object) -> None:
    publish(folder, Source())
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(IndexStale, match="outside"):
        read_manifest(folder)


def test_a_failed_publication_leaves_the_old_index(folder: Path) -> None:
    publish(folder, Source(), b"old")

    def interrupted() -> None:
        with publish_index(folder, "dense", Source()) as data:
            (data / "index.bin").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    data = fresh_index(folder, "dense", Source())
    assert (data / "sub" / "index.bin").read_bytes() == b"old"
    assert sorted(path.name for path in folder.iterdir()) == sorted([data.name, "manifest.json"])


def test_a_new_index_takes_the_place_of_the_old_one_and_of_debris(folder: Path) -> None:
    publish(folder, Source(), b"old")
    (folder / "data-left-by-a-killed-process").mkdir()
    publish(folder, Source(generation=4), b"new")
    data = fresh_index(folder, "dense", Source(generation=4))
    assert (data / "sub" / "index.bin").read_bytes() == b"new"
    assert len(list(folder.iterdir())) == 2


def test_the_store_tells_stale_and_damaged_indexes(tmp_path: Path) -> None:
    with PassageStore.create(tmp_path / "ds") as store:
        store.add([Passage("a", "x")])
        for name in ("bm25", "dense"):
            with store.snapshot(), publish_index(store.index_dir(name), name, store) as data:
                (data / "f").write_bytes(b"x")
        assert store.verify() == []
        (store.index_dir("dense") / read_manifest(store.index_dir("dense")).data / "f").write_bytes(b"y")
        store.add([Passage("b", "y")])
        first, second = store.verify()
        assert "bm25 belongs to generation 1, the passages are at 2" in first
        assert "f is damaged" in second
