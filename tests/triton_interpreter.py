"""Without a GPU, Triton's kernels run on the CPU under its interpreter.

Owns: the switch. Import it before anything that imports Triton, which reads the switch once, when it is imported.
"""

import os

import torch

INTERPRETED = not torch.cuda.is_available()
if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"
