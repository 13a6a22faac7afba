"""Folders of encoded units: what was written is read bit for bit; torn files and other people's units are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.engine.kvcache.digest import digest
from ewe.engine.units.unit_check import damaged_shards
from ewe.engine.units.unit_files import MANIFEST, SHARDS, UnitIdentity, open_units, unit_key
from ewe.engine.units.unit_writer import UnitWriter
from ewe.errors import PrecomputedError

IDENTITY = UnitIdentity("w", "c", "t", "{text}", 8, "float32", ((2, 3, 4), (1, 5, 5)))
PER_TOKEN = 2 * 7 + 10


def kv_of(tokens: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(tokens))
    return torch.randn(len(tokens) * PER_TOKEN, generator=generator).to(dtype)


def write(folder: Path, units: list[tuple[int, ...]], shard_bytes: int = 1 << 30) -> None:
    with UnitWriter(folder, IDENTITY, shard_bytes) as writer:
        for tokens in units:
            writer.add(tokens, kv_of(tokens))


UNITS = [(1, 2, 3), (4,), (5, 6), (70_000, 8)]


@examples(8, 25)
@given(
    units=st.lists(st.lists(st.integers(0, 200_000), min_size=1, max_size=8).map(tuple), min_size=1, unique=True),
    shard_bytes=st.sampled_from([1, 500, 10_000]),
    cut=st.integers(0, 20),
)
def test_what_is_written_is_read_whatever_the_shards_and_the_interruptions(
    units: list[tuple[int, ...]], shard_bytes: int, cut: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "units"
        write(folder, units[:cut], shard_bytes)
        write(folder, units[cut:], shard_bytes)
        stored = open_units(folder, IDENTITY)
        assert stored.keys() == {unit_key(tokens) for tokens in units}
        for tokens in units:
            assert torch.equal(stored[unit_key(tokens)].read(), kv_of(tokens))


def test_a_writer_knows_what_is_there_and_starts_a_new_shard(tmp_path: Path) -> None:
    write(tmp_path, UNITS[:2])
    (tmp_path / "shard-00001.safetensors.partial").write_bytes(b"of a process that was killed")
    with UnitWriter(tmp_path, IDENTITY) as writer:
        assert writer.keys == {unit_key(tokens) for tokens in UNITS[:2]}
        writer.add(UNITS[2], kv_of(UNITS[2]))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "shard-00000.safetensors",
        "shard-00001.safetensors",
        MANIFEST,
    ]


def test_what_was_encoded_before_an_error_is_kept(tmp_path: Path) -> None:
    def interrupted() -> None:
        with UnitWriter(tmp_path, IDENTITY) as writer:
            writer.add(UNITS[0], kv_of(UNITS[0]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(open_units(tmp_path, IDENTITY)) == [unit_key(UNITS[0])]


def test_two_processes_cannot_write_at_a_time(tmp_path: Path) -> None:
    with UnitWriter(tmp_path, IDENTITY), pytest.raises(PrecomputedError, match="another process"):
        UnitWriter(tmp_path, IDENTITY)
    write(tmp_path, UNITS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": "x"}, "weights are others"),
        ({"config": "x"}, "configuration"),
        ({"tokenizer": "x"}, "tokenizer"),
        ({"unit_template": "{title} {text}"}, "unit_template is '{text}' there"),
        ({"unit_tokens": 9}, "unit_tokens is 8 there and 9 here"),
        ({"dtype": "bfloat16"}, "dtype is 'float32' there and 'bfloat16' here"),
        ({"layers": ((2, 3, 4),)}, "layers"),
        ({"first_position": 4}, "first_position"),
    ],
)
def test_units_of_something_else_are_refused_by_name(tmp_path: Path, change: dict[str, object], said: str) -> None:
    write(tmp_path, UNITS)
    other = replace(IDENTITY, **change)  # type: ignore[arg-type]
    for use in (lambda: open_units(tmp_path, other), lambda: UnitWriter(tmp_path, other)):
        with pytest.raises(PrecomputedError) as caught:
            use()
        assert said in str(caught.value)
        assert "memory.precomputed" in str(caught.value)
        assert str(tmp_path) in str(caught.value)


def _cut_shard(folder: Path) -> None:
    shard = next(folder.glob(SHARDS))
    shard.write_bytes(shard.read_bytes()[:-1])


def _foreign_shard(folder: Path) -> None:
    other = folder.parent / "other"
    with UnitWriter(other, replace(IDENTITY, weights="x")) as writer:
        writer.add(UNITS[0], kv_of(UNITS[0]))
    shutil.copy(other / "shard-00000.safetensors", folder / "shard-00009.safetensors")


def _digest_that_is_a_path(folder: Path) -> None:
    shard = next(folder.glob(SHARDS))
    data = shard.read_bytes()
    at = data.index(b"digests") + len(b'digests":"[\\"')
    shard.write_bytes(data[:at] + b"../" * 21 + b"x" + data[at + 64 :])


def _old_format(folder: Path) -> None:
    values = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**values, "format": 0}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut_shard, "shard-00000.safetensors is torn"),
        (lambda folder: (folder / "shard-00000.safetensors").write_bytes(b""), "shard-00000.safetensors is torn"),
        (_digest_that_is_a_path, "(a digest is none)"),
        (_foreign_shard, "shard-00009.safetensors belongs to another folder"),
        (_old_format, "format 0"),
        (lambda folder: (folder / MANIFEST).write_text("{"), "units.json is damaged"),
        (lambda folder: (folder / MANIFEST).write_text("[]"), "units.json is damaged"),
        (lambda folder: (folder / MANIFEST).write_text('{"format": 2, "identity": {}}'), "units.json is damaged"),
        (lambda folder: (folder / MANIFEST).unlink(), "holds no precomputed units"),
        (lambda folder: (folder / "shard-00000.safetensors").unlink(), "holds no units yet"),
    ],
)
def test_damage_is_refused_by_name(tmp_path: Path, damage: Callable[[Path], object], said: str) -> None:
    folder = tmp_path / "units"
    write(folder, UNITS)
    damage(folder)
    with pytest.raises(PrecomputedError) as caught:
        open_units(folder, IDENTITY)
    assert said in str(caught.value)


@pytest.mark.parametrize("place", [-1, -PER_TOKEN * 4, -PER_TOKEN * 4 * 8])
def test_a_changed_byte_is_found_when_the_unit_is_read(tmp_path: Path, place: int) -> None:
    write(tmp_path, UNITS)
    shard = tmp_path / "shard-00000.safetensors"
    data = bytearray(shard.read_bytes())
    data[place] ^= 1
    shard.write_bytes(data)
    problems = []
    for stored in open_units(tmp_path, IDENTITY).values():
        try:
            stored.read()
        except PrecomputedError as error:
            problems.append(str(error))
    [problem] = problems
    assert "shard-00000.safetensors is damaged" in problem


def test_damaged_files_are_named_and_removed_for_the_next_precompute(tmp_path: Path) -> None:
    """One with a flipped bit in a unit, one in its header; the third stays."""
    write(tmp_path, UNITS[:3], shard_bytes=1)
    first, second, third = sorted(tmp_path.glob(SHARDS))
    for path, place in ((first, -1), (second, 9)):
        data = bytearray(path.read_bytes())
        data[place] ^= 1
        path.write_bytes(data)
    assert list(damaged_shards(tmp_path)) == [first, second]
    found = CliRunner().invoke(app, ["index", "check", str(tmp_path)])
    assert (found.exit_code, f"{first} is damaged" in found.stdout, f"{second} is torn" in found.stdout) == (
        1,
        True,
        True,
    )
    assert CliRunner().invoke(app, ["index", "check", str(tmp_path), "--repair"]).exit_code == 0
    assert sorted(tmp_path.glob(SHARDS)) == [third]
    write(tmp_path, UNITS[:2])
    assert damaged_shards(tmp_path) == {}
    assert open_units(tmp_path, IDENTITY).keys() == set(map(unit_key, UNITS[:3]))


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(PrecomputedError, match="holds no precomputed units"):
        UnitWriter(tmp_path, IDENTITY)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.uint8])
@pytest.mark.parametrize("size", [0, 3, 8 * 4096, 3 * 8 * 4096 + 5])
def test_digest_sees_every_byte_and_its_place(dtype: torch.dtype, size: int) -> None:
    data = torch.randint(1, 100, (size,), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    data = data[: size // dtype.itemsize * dtype.itemsize].view(dtype)
    original = digest([data])
    assert len({original, digest([data, data]), digest([data.view(1, -1)])}) == 3
    for place in {0, len(data) // 2, len(data) - 1} if len(data) else ():
        changed = data.clone()
        changed.view(torch.uint8)[place * dtype.itemsize] ^= 128
        assert digest([changed]) != original
    if size > 8 * 4096:
        assert digest([data.roll(8 * 4096 // dtype.itemsize)]) != original
