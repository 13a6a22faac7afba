"""A log on the disk: what was there stays as far as it counts, and nothing follows a line that is not whole."""

from contextlib import closing
from pathlib import Path

import pytest

from ewe.text.append_log import AppendLog


def test_lines_follow_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntor")
    with closing(AppendLog(path, 4)) as log:
        log.append("zwei \ud800\n")
        log.append(b"three\n")
    assert path.read_bytes() == b"one\nzwei ?\nthree\n"


def test_nothing_follows_what_the_disk_had_no_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    log = AppendLog(tmp_path / "log", 0)
    log.append("one\n")
    with monkeypatch.context() as full:
        full.setattr("ewe.text.append_log.os.fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            log.append("two\n")
    assert log.is_closed
    with pytest.raises(ValueError, match="closed"):
        log.append("three\n")
