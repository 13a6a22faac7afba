"""What flipped bits do: 1,000 of them, one at a time, in the files of freshly made stores, then everything is read.

A store of long-term memories with vectors, histories and deletions, a datastore built from files with a BM25 and a
dense index, and a folder of encoded units. The file is drawn first, then the bit, so that small files are hit as often
as large ones. Each time the store is copied, one bit of one of its files is flipped, and all that it holds is asked
for: by scanning, by id, by search, memory by memory with its history, unit by unit. Of what `ewe index info` says the
texts count, not how many passages it counts per file and source.

altered: flips after which something was returned that was never written, the figure that has to be 0. lost: flips after
which something was missing and nothing said so. misranked: flips after which a search found others of what was
written, and nothing said so. crashed: flips that ended in an exception that is none of the engine's. refused: flips
that an error named; unharmed: flips after which every answer was right.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch

from benchmarks.common import parse_arguments, report
from ewe.engine.units.unit_files import UnitIdentity, open_units
from ewe.engine.units.unit_writer import UnitWriter
from ewe.errors import EWEError
from ewe.longterm.memory_search import MemorySearch
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.store import Change, MemoryStore
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.dense import DenseRetriever
from ewe.retrieval.ingest import ChunkRules, Request, build
from ewe.retrieval.ingest.datastore_info import info
from ewe.retrieval.store import PassageStore
from ewe.text.words import words

_SCOPES = (Scope(), Scope("ann"), Scope("ann", "helper"), Scope("bob"), Scope(agent="helper"))
_TOPICS = ("tea", "trains", "bridges", "opera", "chess", "gardens", "winter", "maps")
_IDENTITY = UnitIdentity("w", "c", "t", "{text}", 16, "float32", ((2, 4, 4),))
_PER_TOKEN = 16
_OUTCOMES = ("altered", "crashed", "lost", "misranked", "refused")  # the worst first
Records = Iterable[Hashable]
Answers = dict[str, Callable[[], Records]]


class WordEncoder:
    """Texts to the sums of one fixed direction per word, at unit length."""

    name, dimension, fingerprint = "words", 32, "words-1"

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, 32]."""
        sums = np.full((len(texts), self.dimension), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                sums[row] += _direction(word, self.dimension)
        return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), dtype=np.float32)

    encode_queries = encode_passages


@cache
def _direction(word: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest())
    return np.random.default_rng(seed).standard_normal(dimension)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of store: how it is made, and all that can be asked of it, each answer as records."""

    name: str
    make: Callable[[Path, int], None]
    ask: Callable[[Path], Answers]


def make_memories(folder: Path, size: int) -> None:
    """Memories of five scopes, some revised, recalled, deleted or shared, with vectors."""
    source = MemorySource("user", "ann", 0.8)
    with MemoryStore.create(folder) as store:
        for scope in _SCOPES:
            ids = [f"m{number}" for number in range(size)]
            texts = [f"{_TOPICS[number % 8]} of {number} for {scope.user or 'all'}" for number in range(size)]
            store.add(Memory(one, text, source=source, scope=scope) for one, text in zip(ids, texts, strict=True))
            for one in ids[::3]:
                store.revise(scope, one, Change(veracity=0.75), at=2.0, reason="said", evidence=["passage:p1"])
            store.recalled(scope, ids[::4])
            store.delete(scope, ids[:2], at=3.0, reason="asked for")
        store.embeddings.embed(WordEncoder())
        store.erase("bob", at=4.0, reason="asked for")
        store.scrub()


def ask_memories(folder: Path) -> Answers:
    """The memories of a store, their histories, the log, and what searches find."""

    def read(find: Callable[[MemoryStore], Records]) -> Callable[[], Records]:
        def answer() -> Records:
            with MemoryStore.open(folder) as store, store.snapshot():
                return list(find(store))

        return answer

    def by_id(store: MemoryStore) -> Records:
        found = (store.find(scope, f"m{number}") for scope in _SCOPES for number in range(20))
        return (repr(memory) for memory in found if memory is not None)

    def histories(store: MemoryStore) -> Records:
        return (repr((one.scope, store.history(one.scope, one.id))) for one in store.scan(_SCOPES))

    def searched(store: MemoryStore) -> Records:
        found = MemorySearch(store, WordEncoder(), -1.0).search(_TOPICS, _SCOPES, 20)
        return (repr(hit.memory) for hits in found for hit in hits)

    return {
        "scan": read(lambda store: map(repr, store.scan())),
        "scan by scope": read(lambda store: (repr(one) for scope in _SCOPES for one in store.scan([scope]))),
        "by id": read(by_id),
        "histories": read(histories),
        "found: memories": read(searched),
        "owners": read(lambda store: store.scopes().items()),
        "deletions": read(lambda store: map(repr, store.deletions())),
    }


def make_datastore(folder: Path, size: int) -> None:
    """A datastore of text files, with both indexes."""
    texts = folder.parent / "texts"
    texts.mkdir(exist_ok=True)
    for number in range(size):
        lines = [f"{_TOPICS[(number + line) % 8]} number {line} of file {number}." for line in range(6)]
        (texts / f"{number}.txt").write_text("\n\n".join(lines))
    build(folder, Request((str(texts),), processes=1), ChunkRules(20, 0), "off")
    with PassageStore.open(folder) as store:
        BM25Retriever(store)
        DenseRetriever(store, WordEncoder())


def ask_datastore(folder: Path) -> Answers:
    """The passages of a datastore, what searches find, and what its owner is told."""

    def scanned() -> Records:
        with PassageStore.open(folder) as store:
            return [repr(passage) for _, passage in store.scan()]

    def searched(place: int) -> Callable[[], Records]:
        def answer() -> Records:
            with PassageStore.open(folder) as store:
                opened = BM25Retriever(store) if place == 0 else DenseRetriever(store, WordEncoder())
                return [repr(hit.passage) for hits in opened.retrieve(_TOPICS, 20) for hit in hits]

        return answer

    def told() -> Records:
        facts = {name: value for name, value in info(folder).items() if name not in ("bytes", "indexes", "read")}
        return map(repr, {**facts, "largest_sources": sorted(facts["largest_sources"])}.items())

    return {"scan": scanned, "found: by words": searched(0), "found: by vectors": searched(1), "info": told}


def make_units(folder: Path, size: int) -> None:
    """Encoded units in two shards."""
    generator = torch.Generator().manual_seed(0)
    with UnitWriter(folder, _IDENTITY, 64 * size * _PER_TOKEN) as writer:
        for number in range(size):
            tokens = list(range(number, number + 4 + number % 12))
            writer.add(tokens, torch.randn(len(tokens) * _PER_TOKEN, generator=generator))


def ask_units(folder: Path) -> Answers:
    """Every unit by its tokens."""

    def units() -> Records:
        return [(key, unit.read().numpy().tobytes()) for key, unit in open_units(folder, _IDENTITY).items()]

    return {"units": units}


KINDS = (
    Kind("memories", make_memories, ask_memories),
    Kind("datastore", make_datastore, ask_datastore),
    Kind("units", make_units, ask_units),
)


def outcome(answers: Answers, truth: dict[str, Counter[Hashable]]) -> tuple[str, str]:
    """What all answers together were, the worst first, and which answer it was."""
    found: dict[str, str] = {}
    written = {record for records in truth.values() for record in records}
    for name, answer in answers.items():
        try:
            records = Counter(answer())
        except EWEError:
            found.setdefault("refused", name)
            continue
        except Exception as error:
            found.setdefault("crashed", f"{name}: {type(error).__name__}: {error}")
            continue
        new = [record for record in records - truth[name] if record not in written or not name.startswith("found")]
        if new:
            found.setdefault("altered", f"{name}: {new[0]}")
        elif records != truth[name]:
            found.setdefault("misranked" if name.startswith("found") else "lost", name)
    worst = next((kind for kind in _OUTCOMES if kind in found), "unharmed")
    return worst, found.get(worst, "")


def flip(path: Path, bit: int) -> None:
    """Flips one bit of a file."""
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def measure(kind: Kind, root: Path, size: int, flips: int, seed: int) -> Counter[str]:
    """How often each outcome came of `flips` bits of the files of one kind of store."""
    made, copy = root / kind.name, root / f"{kind.name}-flipped"
    kind.make(made, size)
    truth = {name: Counter(answer()) for name, answer in kind.ask(made).items()}
    files = [path.relative_to(made) for path in sorted(made.rglob("*")) if path.is_file() and path.stat().st_size]
    random_bits, outcomes = random.Random(seed), Counter[str]()
    for _ in range(flips):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(made, copy)
        file = random_bits.choice(files)
        bit = random_bits.randrange(8 * (copy / file).stat().st_size)
        flip(copy / file, bit)
        what, where = outcome(kind.ask(copy), truth)
        outcomes[what] += 1
        if what not in ("refused", "unharmed"):
            print(f"{what}: bit {bit} of {kind.name}/{file}: {where}", flush=True)
    return outcomes


def main() -> None:
    """Flips and reports."""
    arguments = parse_arguments(
        __doc__,
        lambda parser: [
            parser.add_argument("--flips", type=int, default=1000, help="bits, over all kinds of stores"),
            parser.add_argument("--seed", type=int, default=0),
        ],
    )
    size, flips = (8, 12) if arguments.smoke else (20, arguments.flips)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as root:
        for place, kind in enumerate(KINDS):
            share = flips * (place + 1) // len(KINDS) - flips * place // len(KINDS)
            outcomes = measure(kind, Path(root), size, share, arguments.seed)
            figures |= {f"{kind.name}: {name}": outcomes[name] for name in (*_OUTCOMES, "unharmed")}
    figures["altered"] = sum(value for name, value in figures.items() if name.endswith(": altered"))
    report("bit_flips", arguments, {"flips": flips, "size": size, "seed": arguments.seed}, figures)


if __name__ == "__main__":
    main()
