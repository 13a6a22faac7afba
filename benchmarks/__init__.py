"""Measurements of the engine against transformers and against itself; never part of the test run."""
