"""Claims of a sentence: checkable statements that stand alone, found by rules or by a language model."""
