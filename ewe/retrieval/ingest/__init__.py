"""From people's own files to the passages of a store."""

from ewe.retrieval.ingest.build import Progress, Report, Request, add, build
from ewe.retrieval.ingest.chunker import ChunkRules
from ewe.retrieval.ingest.documents import Problem, ReadOptions
from ewe.retrieval.ingest.fields import read_sources

__all__ = ["ChunkRules", "Problem", "Progress", "ReadOptions", "Report", "Request", "add", "build", "read_sources"]
