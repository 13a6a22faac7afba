"""Batches in OpenAI's format: requests from a file, one answer for each in a log that survives a kill."""
