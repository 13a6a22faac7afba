"""Retrieval and verification from the engine's side: their threads, verdicts, judges in the engine's batch."""
