"""NEST (Li et al. 2024): the passages of one retrieval are copied from, by the hidden states of their tokens.

When a span is copied is decided token by token where distributions are made:
`ewe.engine.scheduling.nearest_neighbours`.
"""

from ewe.engine.effects import policy
from ewe.policies.rag import rag

nest = policy(retrieves=True, needs_retriever=True, captures="hidden")(rag.write)
"""As under rag, but that passages become texts to copy from."""
