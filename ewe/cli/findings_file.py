"""Files of findings that a later run can go on with, the settings they were written with, and where figures go."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import typer

from ewe.cli.collect_env import environment
from ewe.cli.options import place_for_a_file, result
from ewe.cli.progress_lines import counted_progress
from ewe.cli.prompt_runner import PromptForm
from ewe.config import Config
from ewe.errors import InvalidRequestError
from ewe.text.append_log import AppendLog
from ewe.text.jsonable import jsonable
from ewe.types import Passage
from ewe.types.sampling_params import SamplingParams

# What decides where and how fast an answer is computed, not what it says: a run may go on with less memory.
_NO_MATTER: dict[str, Any] = {
    "model": {"device", "compile", "device_map", "tensor_parallel"},
    "cache": {"block_size", "num_blocks", "memory_gib", "unit_cache", "host_gib", "disk_gib", "gpu_share"},
    "scheduler": True,
}
_AS_GIVEN = PromptForm()
_SHOWN = 100  # characters of a value in a message
_ABSENT = object()


def run_settings(
    config: Config, params: SamplingParams, form: PromptForm = _AS_GIVEN, documents: Sequence[Passage] | None = None
) -> dict[str, Any]:
    """All settings that can change an answer, as JSON holds them; documents and datastores by a digest of their texts.

    Raises DatastoreError if the folder of the datastore is none.
    """
    values = {
        **config.model_dump(mode="json", exclude=_NO_MATTER),
        "datastore_content": content_digest(config.datastore),
        "sampling": asdict(params),
        "prompts": asdict(form),
        "documents": [
            f"{passage.id} ({hashlib.sha256(json.dumps(asdict(passage)).encode()).hexdigest()[:12]})"
            for passage in documents or ()
        ],
    }
    through_json: dict[str, Any] = json.loads(json.dumps(jsonable(values)))
    return through_json


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], group: str = "") -> Iterator[str]:
    for key in sorted({*old, *new}):
        before, now = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if before == now:
            continue
        if before and now and isinstance(before, dict) and isinstance(now, dict):
            yield from _differences(before, now, f"{group}{key}.")
        else:
            yield f"{group}{key} was {_shown(before)}, is now {_shown(now)}"


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


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


Record = TypeVar("Record")


class FindingsFile(Generic[Record]):
    """Records, and the file that they go to, if there is one.

    kinds: the dataclasses that records may be of. Raises InvalidRequestError, and changes nothing, for a file of
    something else or one written under other settings. A line that a killed run left without its end is cut off.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any], kinds: Sequence[type[Record]]) -> None:
        self.records: list[Record] = []
        self._log: AppendLog | None = None
        if path is None:
            return
        kept = 0
        if path.exists() and path.stat().st_size:
            written_with, self.records, kept = read_findings(path, kinds)
            refuse_differences(path, written_with, settings)
        self._log = AppendLog(path, kept)
        if not kept:
            self._write({"settings": settings})

    def add(self, record: Record) -> None:
        """Takes in one record, and brings it to the disk."""
        self.records.append(record)
        self._write({type(record).__name__.lower(): asdict(record)})  # type: ignore[call-overload]

    def close(self) -> None:
        """Closes the file."""
        if self._log is not None:
            self._log.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log.append(json.dumps(line, ensure_ascii=False) + "\n")


@contextmanager
def recording(
    findings: FindingsFile[Record], what: str, total: int, done: int = 0, others: int = 0
) -> Iterator[Callable[[Any], None]]:
    """A function that takes in a record and tells how far the run is, of which so many are done.

    others: how many records will take about as long as the first one.
    """
    with counted_progress(what, total, done, others) as advance:

        def take(record: Any) -> None:
            findings.add(record)
            advance(f"{what}, {record.system}", getattr(record, "wall_s", None))

        yield take


def _place_for_a_picture(path: Path | None) -> Path | None:
    """Refuses a path that cannot be written, and any path where no picture can be drawn."""
    if path is not None and find_spec("matplotlib") is None:
        raise typer.BadParameter("plots need matplotlib: install it with pip install 'ewe-engine[plots]'")
    return place_for_a_file(path)


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """Where the figures of an evaluation go, and how they are shown."""

    json_file: Annotated[
        Path | None, result("--json", help="Write the figures to this file.", callback=place_for_a_file)
    ] = None
    plot: Annotated[
        Path | None, result("--plot", help="Draw the figures into this PNG file.", callback=_place_for_a_picture)
    ] = None
    markdown: Annotated[bool, result("--markdown", help="Print the table as Markdown.")] = False

    def plot_of(self, name: str, count: int) -> Path | None:
        """The file of one plot among `count`."""
        if self.plot is None or count == 1:
            return self.plot
        return self.plot.with_stem(f"{self.plot.stem}-{name}")

    def write(self, figures: Mapping[str, Any]) -> None:
        """Writes figures, and the machine that they are of, as JSON into the file, if there is one."""
        if self.json_file is not None:
            document = {**figures, "environment": environment()}
            self.json_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_findings(path: Path, kinds: Sequence[type[Record]]) -> tuple[dict[str, Any], list[Record], int]:
    """The settings and records of a file, and the bytes of its whole lines; nothing and 0 where even the first is torn.

    Raises InvalidRequestError for a file of something else.
    """
    by_name = {kind.__name__.lower(): kind for kind in kinds}
    try:
        content = path.read_bytes()
        kept = content.rfind(b"\n") + 1
        if not kept and content.startswith(b'{"settings"'[: len(content)]):
            return {}, [], 0
        first, *others = (json.loads(line) for line in content[:kept].split(b"\n") if line)
        records = [by_name[kind](**values) for line in others for kind, values in line.items()]
        return dict(first["settings"]), records, kept
    except OSError as error:
        raise InvalidRequestError(f"cannot read {path}: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidRequestError(f"{path} is not what this evaluation wrote; choose another file") from error


def refuse_differences(
    path: Path,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    advice: str = "Give the old settings to go on, or choose another --output",
) -> None:
    """Raises InvalidRequestError for a file that was written with other settings, naming them."""
    changed = list(_differences(old, new)) if old else []
    if changed:
        raise InvalidRequestError(f"{path} was written with other settings: {'; '.join(changed)}. {advice}")
