"""What the answers of a run depend on, to be held against what the answers of a file were written with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ewe.cli.asking import PromptForm
from ewe.config import Config
from ewe.report import jsonable
from ewe.sampling import SamplingParams
from ewe.types import Passage

# What decides where and how fast an answer is computed, not what it says: a run may go on with less memory.
_NO_MATTER: dict[str, Any] = {
    "model": {"device", "compile"},
    "cache": {"block_size", "num_blocks", "memory_gib", "unit_cache", "host_gib", "gpu_share"},
    "scheduler": True,
}
_SHOWN = 100  # characters of a value in a message
_ABSENT = object()


def run_settings(
    config: Config, params: SamplingParams, form: PromptForm, documents: Sequence[Passage] | None
) -> dict[str, Any]:
    """All settings that can change an answer, as JSON holds them; documents and datastores by a digest of their texts.

    Raises DatastoreError if the folder of the datastore is none.
    """
    values = {
        **config.model_dump(mode="json", exclude=_NO_MATTER),
        "datastore_content": content_digest(config.datastore),
        "sampling": asdict(params),
        "prompts": asdict(form),
        "documents": [f"{passage.id} ({_digest(passage)})" for passage in documents or ()],
    }
    through_json: dict[str, Any] = json.loads(json.dumps(jsonable(values)))
    return through_json


def differences(old: Mapping[str, Any], new: Mapping[str, Any], group: str = "") -> Iterator[str]:
    """Every setting that differs, with the value it had and the one it has."""
    for key in sorted({*old, *new}):
        before, now = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if before == now:
            continue
        if before and now and isinstance(before, dict) and isinstance(now, dict):
            yield from differences(before, now, f"{group}{key}.")
        else:
            yield f"{group}{key} was {_shown(before)}, is now {_shown(now)}"


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _digest(passage: Passage) -> str:
    return hashlib.sha256(json.dumps(asdict(passage)).encode()).hexdigest()[:12]


def content_digest(datastore: str | None) -> str | None:
    """What tells a datastore from its own later state: the store's checksum, or the digest of a file."""
    if datastore is None or datastore == "builtin" or not Path(datastore).exists():
        return None  # what does not exist is refused when the engine opens it
    if Path(datastore).is_dir():
        from ewe.retrieval.store import PassageStore

        with PassageStore.open(datastore) as store:
            return store.checksum[:12]
    with Path(datastore).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
