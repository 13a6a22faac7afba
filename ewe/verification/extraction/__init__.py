"""Claims of a sentence: checkable statements that stand alone."""
