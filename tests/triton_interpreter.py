"""Without a GPU, Triton's kernels run on the CPU under its interpreter.

Import it before anything that imports Triton, which reads the switch once, when it is imported.
"""

import inspect
import os
from functools import cache
from typing import Any

import torch

INTERPRETED = not torch.cuda.is_available()
if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"


def quicken() -> None:
    """At each call of a device function, the interpreter searches the language for what it has to replace: kept."""
    from triton import language
    from triton.runtime import interpreter

    @cache
    def builtins_of(package: Any) -> list[tuple[str, Any]]:
        return [(name, member) for name, member in inspect.getmembers(package) if language.core.is_builtin(member)]

    def patch_builtin(package: Any, *rest: Any) -> None:
        for name, member in builtins_of(package):
            if getattr(package, name) is member:
                interpreter._patch_attr(package, name, member, *rest)

    interpreter._patch_builtin = patch_builtin


if INTERPRETED:
    quicken()
