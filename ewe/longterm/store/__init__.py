"""Memories on disk, with their histories: one writer, many readers, no way from one scope into another."""

from ewe.longterm.store.adding import AddResult
from ewe.longterm.store.erasing import Erasure
from ewe.longterm.store.exchange import ImportReport, erase_from_export, export_jsonl, import_jsonl
from ewe.longterm.store.memory_change import Change
from ewe.longterm.store.memory_rows import Deletion
from ewe.longterm.store.memory_store import MemoryStore

__all__ = [
    "AddResult",
    "Change",
    "Deletion",
    "Erasure",
    "ImportReport",
    "MemoryStore",
    "erase_from_export",
    "export_jsonl",
    "import_jsonl",
]
