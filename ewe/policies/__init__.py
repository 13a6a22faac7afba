"""Policies: how an answer is written, each a generator that yields the effects of `ewe.engine.effects`."""
