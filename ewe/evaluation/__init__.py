"""Measuring decoding policies against exact ground truth, and how a model reads its memory."""
