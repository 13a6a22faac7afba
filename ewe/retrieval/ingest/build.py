"""Building a datastore from files, and adding files to one; a run that was killed is gone on with."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ewe.config.cpu_count import usable_cpus
from ewe.errors import DatastoreError
from ewe.retrieval.ingest.chunker import ChunkRules
from ewe.retrieval.ingest.dedup import Deduplicator
from ewe.retrieval.ingest.documents import Block, Problem, ReadOptions, SourceFile
from ewe.retrieval.ingest.files import check_encoding, find_files, place_of
from ewe.retrieval.ingest.ledger import Counts, FileRecord, Ledger
from ewe.retrieval.ingest.readers import read_blocks
from ewe.retrieval.ingest.work import Dedup, Outcome, Prepared, WorkRules, work_in_order
from ewe.retrieval.store import PassageStore

_SMALL = 4 << 20  # bytes that are read before other processes would have started
_GROUP_PASSAGES, _GROUP_BLOCKS, _GROUP_S = 500, 100, 2.0  # how much is committed at once
_MOST_PROCESSES = 8
_GIVEN_UP = "nothing at its beginning can be read: the rest is left out"


@dataclass(frozen=True, slots=True)
class Request:
    """What to read, and how. processes 0 takes one per core, or one alone for little input."""

    sources: tuple[str, ...]
    read: ReadOptions = field(default_factory=ReadOptions)
    veracity: dict[str, float] = field(default_factory=dict)
    processes: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes of input that are done and that there are, and passages that were added by this run."""

    done: int
    total: int
    passages: int


@dataclass(frozen=True, slots=True)
class Report:
    """What came of the files of a request, over all runs.

    unknown, links: paths in folders that were left out, files of unknown kind and links to a folder or to nothing.
    skipped: how many files an earlier run had read already. gone: files of the datastore that are no longer where the
    request looks; pruned: how many passages of theirs were removed, None if that was not asked.
    """

    counts: Counts
    unknown: tuple[str, ...]
    links: tuple[str, ...]
    skipped: int
    problems: tuple[Problem, ...]
    gone: tuple[str, ...] = ()
    pruned: int | None = None


OnProgress = Callable[[Progress], None]


def build(
    path: Path, request: Request, chunks: ChunkRules, dedup: Dedup = "near", on_progress: OnProgress | None = None
) -> Report:
    """Makes a datastore in `path`, or goes on with one whose building was interrupted.

    Raises DatastoreError for a folder with a finished datastore, or one that was begun with another request.
    """
    check_encoding(request.read.encoding)
    begun: dict[str, Any] = {"sources": request.sources, "read": asdict(request.read), "veracity": request.veracity}
    rules = {"chunks": asdict(chunks), "dedup": dedup}
    find_files(request.sources, path)  # an argument that is wrong leaves no empty datastore behind
    with _open_or_create(path) as store:
        ledger = Ledger(store)
        known = ledger.settings()
        if not known:
            if len(store):
                raise DatastoreError(f"{path} holds passages that were not read from files: choose another folder")
            ledger.set(rules=rules, building=begun)
        elif known.get("building") is None:
            raise DatastoreError(f"{path} holds a finished datastore: use 'ewe index add', or choose another folder")
        elif (known["rules"], known["building"]) != (_as_json(rules), _as_json(begun)):
            raise DatastoreError(
                f"{path} was begun with other sources or options: give the same ones to go on, or choose another folder"
            )
        report = _Run(store, ledger, request, on_progress).all()
        ledger.set(building=None)
    return report


def add(path: Path, request: Request, on_progress: OnProgress | None = None, prune: bool = False) -> Report:
    """Adds files to a datastore, cut as those before; unchanged ones are skipped, changed ones take their own place.

    prune: remove what came from files that are gone from the places of the request.

    Raises DatastoreError if there is none, or if it is still being built.
    """
    check_encoding(request.read.encoding)
    with PassageStore.open(path, read_only=False) as store:
        ledger = Ledger(store)
        known = ledger.settings()
        if known.get("building"):
            raise DatastoreError(f"the building of {path} was interrupted: run the same 'ewe index build' again first")
        if not known:
            ledger.set(rules={"chunks": asdict(ChunkRules()), "dedup": "near"})
        return _Run(store, ledger, request, on_progress).all(prune)


def _open_or_create(path: Path) -> PassageStore:
    if (path / "passages.sqlite").exists():
        return PassageStore.open(path, read_only=False)
    if path.exists() and not path.is_dir():
        raise DatastoreError(f"{path} is a file: name a folder for the datastore")
    return PassageStore.create(path)


class _Run:
    def __init__(self, store: PassageStore, ledger: Ledger, request: Request, on_progress: OnProgress | None) -> None:
        rules = ledger.settings()["rules"]
        self._store, self._ledger, self._request = store, ledger, request
        self._rules = WorkRules(request.read, ChunkRules(**rules["chunks"]), rules["dedup"], request.veracity)
        self._dedup = Deduplicator(store) if self._rules.dedup != "off" else None
        self._on_progress = on_progress or (lambda progress: None)
        self._given_up: set[int] = set()
        self._done = self._total = self._added = 0

    def all(self, prune: bool = False) -> Report:
        """Reads everything that was not read yet; prune: first removes what came from files that are gone."""
        files = find_files(self._request.sources, self._store.folder)
        gone = self._ledger.gone(map(place_of, self._request.sources))
        pruned = self._ledger.prune(gone) if prune else None
        with self._store.transaction():
            records = [self._ledger.begin(file, self._state(file)) for file in files.files]
        to_read = [record for record in records if not record.finished]
        sizes = {record.number: record.file.path.stat().st_size for record in to_read}
        self._total = sum(sizes.values())
        self._done = sum(min(record.bytes, sizes[record.number]) for record in to_read)
        group: list[tuple[FileRecord, Outcome]] = []
        begun = time.monotonic()
        for part in work_in_order(self._parts(to_read), self._rules, self._processes()):
            group.append(part)
            passages = sum(len(outcome.prepared) for _, outcome in group)
            late = time.monotonic() - begun > _GROUP_S
            if passages >= _GROUP_PASSAGES or len(group) >= _GROUP_BLOCKS or late:
                self._commit(group)
                group, begun = [], time.monotonic()
        self._commit(group)
        chosen = {record.number for record in records}
        skipped = len(records) - len(to_read)
        problems = tuple(self._ledger.problems(20, chosen))
        left_out = tuple(files.unknown), tuple(files.links)
        return Report(self._ledger.counts(chosen), *left_out, skipped, problems, tuple(gone), pruned)

    def _state(self, file: SourceFile) -> str:
        """What a file and the way to read it are; if it differs later, the file is read again from its beginning."""
        try:
            stat = file.path.stat()
        except OSError as error:
            raise DatastoreError(f"{file.path}: {error.strerror}") from error
        how = {**asdict(self._request.read), "veracity": self._request.veracity}
        return json.dumps([stat.st_size, stat.st_mtime_ns, how], sort_keys=True)

    def _processes(self) -> int:
        if self._request.processes:
            return self._request.processes
        return 1 if self._total - self._done < _SMALL else min(_MOST_PROCESSES, usable_cpus())

    def _parts(self, records: Sequence[FileRecord]) -> Iterator[tuple[FileRecord, Block | Outcome]]:
        """Of each file the blocks that were not committed yet, then its end or what keeps the rest from being read."""
        for record in records:
            committed = record.blocks
            end = Outcome(ends=True)
            for number, block in enumerate(read_blocks(record.file, self._request.read)):
                if record.number in self._given_up:
                    break
                if isinstance(block, Problem):
                    end.problems.append(block)
                elif number >= committed:
                    yield record, block
            yield record, end

    def _commit(self, group: Sequence[tuple[FileRecord, Outcome]]) -> None:
        if not group:
            return
        with self._store.transaction():
            for record, outcome in group:
                if outcome.ends:
                    self._ledger.report(record, outcome.problems)
                    self._ledger.finish(record)
                elif record.number not in self._given_up:
                    self._write(record, outcome)
        self._on_progress(Progress(min(self._done, self._total), self._total, self._added))

    def _write(self, record: FileRecord, outcome: Outcome) -> None:
        """The passages of one block, the keys of their duplicates and the progress, in the transaction that is open."""
        kept = self._dedup.unique(outcome.prepared) if self._dedup else outcome.prepared
        kept = self._with_own_ids(record, kept)
        result = self._store.add(item.passage for item in kept)
        added = [(row, item) for row, item in zip(result.rowids, kept, strict=True) if row is not None]
        if self._dedup:
            self._dedup.remember(added)
        problems = outcome.problems + [
            Problem(record.file.label, f"the id {name!r} stands there twice: the second row is left out, rename it")
            for name in result.conflicts
        ]
        if not record.blocks and outcome.problems and not outcome.prepared and not outcome.empty:
            self._given_up.add(record.number)
            self._ledger.finish(record)
            if any(problem.where != record.file.label for problem in outcome.problems):  # else the file is named
                problems.append(Problem(record.file.label, _GIVEN_UP))
        record.blocks += 1
        duplicates = len(outcome.prepared) - len(added) - len(result.conflicts)
        self._ledger.advance(record, outcome.size, [row for row, _ in added], duplicates, outcome.empty, problems)
        self._done += outcome.size
        self._added += len(added)

    def _with_own_ids(self, record: FileRecord, prepared: Sequence[Prepared]) -> list[Prepared]:
        """Passages whose id another file has taken are named after their own, so that tables may count from 1 each."""
        taken = self._ledger.taken([item.passage.id for item in prepared], record)
        return [
            replace(item, passage=replace(item.passage, id=f"{record.file.label}:{item.passage.id}"))
            if item.passage.id in taken
            else item
            for item in prepared
        ]


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))
