"""Passages in Milvus, Elasticsearch or OpenSearch: what `ewe index push` copies there, and how it is searched."""
