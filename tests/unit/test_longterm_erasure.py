"""What a user told, and who the user was, is in no file of a memory's folder once the memories are forgotten."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewe.longterm.memory_api import Memory

NAME, PHRASE = "anneliese", "zqxmarigold"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A file in the folder with everything that is logged."""
    path = tmp_path / "all.log"
    handler, root = logging.FileHandler(path), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield path
    root.removeHandler(handler)
    root.setLevel(level)
    handler.close()


def holders(folder: Path, text: str) -> list[str]:
    """The files below a folder that hold a text, in whatever case, as UTF-8 or UTF-16."""
    sought = (text.encode(), text.encode("utf-16-le"))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if any(one in path.read_bytes().lower() for one in sought)]


def told(folder: Path, count: int) -> Memory:
    """Memories with changes, corrections and feedback, enough of them to fill pages that are free later."""
    memory = Memory(folder / "memories", user=NAME)
    memory.add([{"role": "user", "content": f"I keep {PHRASE} number {i} at home. {'Filler. ' * (i % 60)}"}
                for i in range(count)], infer=False)  # fmt: skip
    [first] = memory.add(f"I live in {PHRASE} street.", metadata={"said": PHRASE})
    memory.update(first.id, f"I live in {PHRASE} lane.")
    memory.feedback(first.id, True)
    memory.add(f"I moved to {PHRASE} road.")
    memory.search(f"Where is {PHRASE}?")
    return memory


def test_no_file_holds_a_user_whose_memories_were_all_deleted(tmp_path: Path, log: Path) -> None:
    memory = told(tmp_path, 60)
    assert holders(tmp_path, NAME)
    assert holders(tmp_path, PHRASE)
    assert memory.delete_all() > 60
    assert holders(tmp_path, PHRASE) == []
    assert holders(tmp_path, NAME) == []
    memory.close()
    assert holders(tmp_path, PHRASE) == holders(tmp_path, NAME) == []
    assert log.exists()


def test_no_file_holds_the_words_of_memories_that_were_forgotten_one_by_one(tmp_path: Path, log: Path) -> None:
    memory = told(tmp_path, 6)
    ids = [one.id for one in memory.get_all()]
    for number, memory_id in enumerate(ids, start=1):
        memory.forget(memory_id, scrub=number == len(ids))
    assert holders(tmp_path, PHRASE) == []
    memory.close()
    assert holders(tmp_path, PHRASE) == []
