"""The paged KV pool and its block manager."""
