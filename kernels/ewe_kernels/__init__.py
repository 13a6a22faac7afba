"""Triton kernels of the EWE attention, each with a float64 reference. Never imports `ewe`."""
