"""Policies that ask the engine several times for one answer: what they ask, in which order, and what drives them."""
