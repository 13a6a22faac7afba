"""How far results may lie from their references: the one table of the tests.

Copies (swaps, slots, tokens) must be exact and need no entry.
"""

import torch

# Attention in a precision against the same inputs in float64; float64 stands for formula against formula.
ATTENTION = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}
# Natural-log probabilities of a whole float32 model against transformers' eager attention.
LOGPROBS = 1e-4
# Shares of attention, float32 throughout.
SHARES = 1e-5
