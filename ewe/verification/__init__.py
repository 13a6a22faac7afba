"""Claims, evidence, verdicts and the feedback they give."""

from ewe.verification.judges.load import load_judge

__all__ = ["load_judge"]
