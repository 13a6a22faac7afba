"""Files of the cache folder are whole, whoever writes them."""

from pathlib import Path

import pytest

from ewe.config.cache_folder import write_whole


def test_a_file_that_cannot_be_written_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "folder" / "figures.json", Path.write_text

    def fill_up(self: Path, text: str, **options: str) -> int:
        write(self, text[:3], **options)
        raise OSError("no space")

    write_whole(path, "before")
    monkeypatch.setattr(Path, "write_text", fill_up)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert list(path.parent.iterdir()) == [path]


def test_who_reads_while_it_is_written_reads_all_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_whole(path, "before")
    with path.open() as reader:
        write_whole(path, "after")
        assert reader.read() == "before"
    assert path.read_text() == "after"
