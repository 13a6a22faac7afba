"""Folders of encoded units: the KV of many unit texts under one model, in safetensors shards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ewe.errors import PrecomputedError
from ewe.kvcache.digest import digest
from ewe.kvcache.fp8 import SCALE

FORMAT = 1
MANIFEST = "units.json"
SHARDS = "shard-*.safetensors"
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
        values = asdict(self)
        # Folders that were made before there was a choice.
        if self.cache_dtype == "auto":
            del values["cache_dtype"]
        if not self.prefix:
            del values["prefix"]
        return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def elements_per_token(self) -> int:
        """Numbers that the KV of one token takes; in fp8 bytes, those of the scales included."""
        scales = 2 * SCALE.itemsize if self.cache_dtype == "fp8_e4m3" else 0
        return sum(heads * (key + value + scales) for heads, key, value in self.layers)

    def differences(self, other: UnitIdentity) -> list[str]:
        """What is another in `other`, in words."""
        found = []
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                words = _DIGESTS.get(field.name)
                found.append(words or f"{_SETTINGS.get(field.name, field.name)} is {mine!r} there and {theirs!r} here")
        return found


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
    """Where one unit lies."""

    shard: Path
    file: Any
    number: int
    digest: str

    def read(self) -> Tensor:
        """Its KV, [tokens * elements per token] in the order of `KVPool.read_slots`: a view of the mapped file.

        Raises PrecomputedError naming the file if it is not what was written.
        """
        kv = self.file.get_tensor(kv_name(self.number))
        tokens = self.file.get_tensor(tokens_name(self.number))
        if digest([tokens, kv]) != self.digest:
            raise PrecomputedError(f"{self.shard} is damaged (unit {self.number}): delete it and precompute again")
        return kv  # type: ignore[no-any-return]


def unit_key(token_ids: Sequence[int]) -> bytes:
    """What a unit is found by: its tokens themselves (int32), so that two contents never share a key."""
    return np.asarray(token_ids, np.int32).tobytes()


def kv_name(number: int) -> str:
    """The name of a unit's KV in its shard."""
    return f"{number}.kv"


def tokens_name(number: int) -> str:
    """The name of a unit's token ids (int32) in its shard."""
    return f"{number}.tokens"


def open_units(folder: Path, identity: UnitIdentity) -> dict[bytes, StoredUnit]:
    """All units of a folder by `unit_key`, the files mapped and not read.

    Raises PrecomputedError if the folder holds none, was made for something else, or a file is torn.
    """
    check_manifest(folder, identity)
    found: dict[bytes, StoredUnit] = {}
    for shard in sorted(folder.glob(SHARDS)):
        found.update(open_shard(shard, identity))
    if not found:
        raise PrecomputedError(f"{folder} holds no units yet: run `ewe index precompute` again to go on")
    return found


def check_manifest(folder: Path, identity: UnitIdentity) -> None:
    """Raise PrecomputedError unless the folder holds units that were made for `identity`."""
    differences = read_manifest(folder).differences(identity)
    if differences:
        raise PrecomputedError(f"{folder} was made for something else: {'; '.join(differences)}; {_AGAIN}")


def read_manifest(folder: Path) -> UnitIdentity:
    """What the units of a folder were made for; raises PrecomputedError if it holds none, or the file is torn."""
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        version = values["format"]
        if version == FORMAT:
            layers = tuple(tuple(layer) for layer in values["identity"].pop("layers"))
            prefix = tuple(values["identity"].pop("prefix", ()))
            made_for = UnitIdentity(**values["identity"], layers=layers, prefix=prefix)
    except OSError as error:
        raise PrecomputedError(
            f"{folder} holds no precomputed units ({MANIFEST}: {error.strerror}): name a folder that "
            "`ewe index precompute` made, or a new one to make"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PrecomputedError(f"{path} is damaged: delete the folder and precompute again") from error
    if version != FORMAT:
        raise PrecomputedError(f"{folder} has format {version!r}, and this version of EWE reads {FORMAT}: {_AGAIN}")
    return made_for


def open_shard(shard: Path, identity: UnitIdentity) -> dict[bytes, StoredUnit]:
    """The units of one file; raises PrecomputedError naming it if it is torn or does not belong to the folder."""
    try:
        file: Any = safe_open(str(shard), framework="pt", device="cpu")
        metadata = file.metadata()
        belongs = metadata["identity"] == identity.digest
        digests = json.loads(metadata["digests"])
        found: dict[bytes, StoredUnit] = {}
        for number, expected in enumerate(digests):
            tokens = file.get_tensor(tokens_name(number))
            size = len(tokens) * identity.elements_per_token
            if file.get_slice(kv_name(number)).get_shape() != [size]:
                raise ValueError("a unit has another size than its tokens take")
            found[tokens.numpy().tobytes()] = StoredUnit(shard, file, number, expected)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise PrecomputedError(f"{shard} is torn or no shard ({error}): delete it and precompute again") from error
    if not belongs:
        raise PrecomputedError(f"{shard} belongs to another folder of units: delete it and precompute again")
    return found
