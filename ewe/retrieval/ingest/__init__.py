"""From people's own files to the passages of a store."""
