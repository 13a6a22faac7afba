"""The engine in a process of its own, beside the one that answers HTTP."""
