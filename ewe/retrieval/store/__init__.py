"""Passages on disk: the one truth of a datastore, and what its rebuildable indexes must agree with."""

from ewe.retrieval.store.manifest import IndexStale, Manifest, fresh_index, publish_index, read_manifest
from ewe.retrieval.store.passage_store import AddResult, PassageStore

__all__ = ["AddResult", "IndexStale", "Manifest", "PassageStore", "fresh_index", "publish_index", "read_manifest"]
