"""Passages on disk: the one truth of a datastore, and what its rebuildable indexes must agree with."""

from ewe.retrieval.store.manifest import IndexStaleError, Manifest, fresh_index, publish_index, read_manifest
from ewe.retrieval.store.store import AddResult, PassageStore

__all__ = ["AddResult", "IndexStaleError", "Manifest", "PassageStore", "fresh_index", "publish_index", "read_manifest"]
