"""Triton kernels of the EWE attention, each with a float64 reference. Never imports `ewe`.

decode and merge: single tokens over paged segments; prefill: runs of tokens; tiles: the sizes of it all; references:
what it must equal.
"""
