"""Claims, evidence, verdicts and the feedback they give."""
