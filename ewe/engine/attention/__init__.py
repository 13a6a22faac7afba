"""The "ewe" attention that transformers' models call, and its backends."""
