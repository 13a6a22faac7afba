"""Tool calls: how models are told of tools, how they write calls, and how that text becomes calls again."""
