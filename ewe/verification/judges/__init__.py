"""Judges: what says whether evidence supports or refutes a claim."""

from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import COLUMNS, INCONCLUSIVE, REFUTED, SUPPORTED, Judge, Pair, checked

__all__ = ["COLUMNS", "INCONCLUSIVE", "REFUTED", "SUPPORTED", "Judge", "Pair", "checked", "load_judge"]
