"""Models: their files, weights and layers, and what computes them on this machine."""
