"""Forward passes of the model over the KV pool, as captured graphs, too, and where memory runs short."""
