"""Measuring decoding policies against exact ground truth."""
