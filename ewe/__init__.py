"""EWE: language models that write text which can be checked."""
