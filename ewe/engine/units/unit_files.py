"""Folders of encoded units: the KV of many unit texts under one model, in safetensors shards."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ewe.engine.kvcache.digest import digest
from ewe.engine.kvcache.fp8 import SCALE
from ewe.engine.units.disk_cache import DiskCache
from ewe.engine.units.unit_folder import UnitFolder, open_folder
from ewe.errors import PrecomputedError

FORMAT = 2
MANIFEST = "units.json"
SHARDS = "shard-*.safetensors"
_LENGTH_BYTES = 8  # of a safetensors file's header, before the header
_AGAIN = "run `ewe index precompute` with these settings and a new --out folder, or unset memory.precomputed"


@dataclass(frozen=True, slots=True)
class UnitIdentity:
    """All that the KV of a text depends on, and all that decides which texts are looked up.

    weights, config, tokenizer: digests. layers: key heads, key and value size of each. prefix: the tokens of a prompt
    that every unit follows, none for bare units; every unit starts at position `first_position` after it. cache_dtype:
    what the KV is kept in, as the setting `cache.dtype` names it.
    """

    weights: str
    config: str
    tokenizer: str
    unit_template: str
    unit_tokens: int
    dtype: str
    layers: tuple[tuple[int, int, int], ...]
    first_position: int = 0
    cache_dtype: str = "auto"
    prefix: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """A short name of it, which every shard carries."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def kv_dtype(self) -> torch.dtype:
        """What stored keys and values are numbers of: bytes in fp8."""
        dtype: torch.dtype = getattr(torch, "uint8" if self.cache_dtype == "fp8_e4m3" else self.dtype)
        return dtype

    @property
    def elements_per_token(self) -> int:
        """Numbers that the KV of one token takes; in fp8 bytes, those of the scales included."""
        scales = 2 * SCALE.itemsize if self.cache_dtype == "fp8_e4m3" else 0
        return sum(heads * (key + value + scales) for heads, key, value in self.layers)

    def differences(self, other: UnitIdentity) -> list[str]:
        """What is another in `other`, in words."""
        differences = []
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                words = _DIGESTS.get(field.name)
                differences.append(
                    words or f"{_SETTINGS.get(field.name, field.name)} is {mine!r} there and {theirs!r} here"
                )
        return differences


_SETTINGS = {"cache_dtype": "cache.dtype"}
_DIGESTS = {
    "weights": "the model's weights are others",
    "config": "the model's configuration is another (or written by another version of transformers)",
    "tokenizer": "the tokenizer is another",
    "layers": "the model's layers have other sizes",
    "prefix": "its units follow another beginning of a prompt (memory.placement, memory.frame, the system's message)",
}


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """Where one unit lies: the bytes `begin` to `end` of a shard; key: its `unit_key`."""

    folder: UnitFolder
    shard: str
    begin: int
    end: int
    dtype: torch.dtype
    key: bytes
    digest: str

    def read(self, cache: DiskCache | None = None) -> Tensor:
        """Its KV, [tokens * elements per token] in the order of `KVPool.read_slots`; mapped if it is on this disk.

        cache: where to look first, and what keeps it. Raises PrecomputedError naming the file if it is not what was
        written, OSError if it cannot be read.
        """
        kept = cache.get(self.digest) if cache is not None else None
        if kept is not None and self._is_whole(kept):
            return kept.view(self.dtype)
        try:
            data = self.folder.read(self.shard, self.begin, self.end)
        except FileNotFoundError as error:
            raise PrecomputedError(f"{self.folder}/{self.shard} is gone: precompute again") from error
        if not self._is_whole(data):
            raise PrecomputedError(f"{self.folder}/{self.shard} is damaged: delete it and precompute again")
        if cache is not None:
            cache.put(self.digest, data)
        return data.view(self.dtype)

    def _is_whole(self, data: Tensor) -> bool:
        if len(data) != self.end - self.begin:
            return False
        return unit_digest(self.key, data.view(self.dtype)) == self.digest


def unit_key(token_ids: Sequence[int]) -> bytes:
    """What a unit is found by: its tokens themselves (int32), so that two contents never share a key."""
    return np.asarray(token_ids, np.int32).tobytes()


def unit_digest(key: bytes, kv: Tensor) -> str:
    """What tells damage, over the tokens and the KV of a unit."""
    return digest([torch.frombuffer(bytearray(key), dtype=torch.int32), kv])


def open_units(location: str | Path, identity: UnitIdentity) -> dict[bytes, StoredUnit]:
    """All units of a folder by `unit_key`; only the headers of its files are read.

    Raises PrecomputedError if the folder holds none, was made for something else, cannot be read, or a file is torn.
    """
    folder = open_folder(location)
    check_manifest(folder, identity)
    units = open_shards(folder, identity)
    if not units:
        raise PrecomputedError(f"{folder} holds no units yet: run `ewe index precompute` again to go on")
    return units


def check_manifest(folder: UnitFolder, identity: UnitIdentity) -> None:
    """Raise PrecomputedError unless the folder holds units that were made for `identity`."""
    differences = read_manifest(folder).differences(identity)
    if differences:
        raise PrecomputedError(f"{folder} was made for something else: {'; '.join(differences)}; {_AGAIN}")


def read_manifest(folder: UnitFolder) -> UnitIdentity:
    """What the units of a folder were made for; raises PrecomputedError if it holds none, or the file is torn."""
    try:
        values = json.loads(folder.read_ranges([(MANIFEST, 0, None)])[0])
        version = values["format"]
        if version == FORMAT:
            layers = tuple(tuple(layer) for layer in values["identity"].pop("layers"))
            prefix = tuple(values["identity"].pop("prefix"))
            made_for = UnitIdentity(**values["identity"], layers=layers, prefix=prefix)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PrecomputedError(
            f"{folder} holds no precomputed units (there is no {MANIFEST}): name a folder that "
            "`ewe index precompute` made, or a new one to make"
        ) from error
    except OSError as error:
        raise PrecomputedError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PrecomputedError(f"{folder}/{MANIFEST} is damaged: delete the folder and precompute again") from error
    if version != FORMAT:
        raise PrecomputedError(f"{folder} has format {version!r}, and this version of EWE reads {FORMAT}: {_AGAIN}")
    return made_for


def open_shards(folder: UnitFolder, identity: UnitIdentity, shards: str = SHARDS) -> dict[bytes, StoredUnit]:
    """The units of all files of these names (a pattern).

    Raises PrecomputedError naming one that is torn or does not belong to the folder.
    """
    try:
        sizes = {name: size for name, size in folder.sizes().items() if fnmatch(name, shards)}
        for name, size in sizes.items():
            if size <= _LENGTH_BYTES:
                raise _torn(folder, name, f"{size} bytes")
        lengths = folder.read_ranges([(name, 0, _LENGTH_BYTES) for name in sizes])
        ends = [_LENGTH_BYTES + int.from_bytes(length, "little") for length in lengths]
        headers = folder.read_ranges(
            [(name, _LENGTH_BYTES, min(end, size)) for (name, size), end in zip(sizes.items(), ends, strict=True)]
        )
    except OSError as error:
        raise PrecomputedError(str(error)) from error
    units: dict[bytes, StoredUnit] = {}
    for (name, size), header in zip(sizes.items(), headers, strict=True):
        units.update(_units_of(folder, name, size, header, identity))
    return units


def _units_of(
    folder: UnitFolder, shard: str, size: int, header: bytes, identity: UnitIdentity
) -> dict[bytes, StoredUnit]:
    stored: dict[bytes, StoredUnit] = {}
    dtype, start = identity.kv_dtype, _LENGTH_BYTES + len(header)
    try:
        layout = json.loads(header)
        metadata = layout["__metadata__"]
        if metadata["identity"] != identity.digest:
            raise PrecomputedError(
                f"{folder}/{shard} belongs to another folder of units: delete it and precompute again"
            )
        units = zip(json.loads(metadata["tokens"]), json.loads(metadata["digests"]), strict=True)
        for number, (token_ids, expected) in enumerate(units):
            begin, end = (start + offset for offset in layout[str(number)]["data_offsets"])
            if end - begin != len(token_ids) * identity.elements_per_token * dtype.itemsize or end > size:
                raise ValueError("a unit has another size than its tokens take")
            if not re.fullmatch("[0-9a-f]{64}", expected):  # it names a file of the disk cache
                raise ValueError("a digest is none")
            key = unit_key(token_ids)
            stored[key] = StoredUnit(folder, shard, begin, end, dtype, key, expected)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _torn(folder, shard, error) from error
    return stored


def _torn(folder: UnitFolder, shard: str, why: object) -> PrecomputedError:
    return PrecomputedError(f"{folder}/{shard} is torn or no shard ({why}): delete it and precompute again")
