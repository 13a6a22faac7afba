"""Without a GPU, Triton's kernels run on the CPU under its interpreter.

Import it before anything that imports Triton, which reads the switch once, when it is imported.
"""

import inspect
import os
from dataclasses import replace
from functools import cache
from typing import Any

import torch

INTERPRETED = not torch.cuda.is_available()
if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"


def quicken() -> None:
    """The interpreter searches the language at each call, and makes its table of types for each array: both are kept.

    It also computes whether integers overflow, and says nothing of it without its option `debug`: left out.
    """
    from triton import language
    from triton.runtime import interpreter

    @cache
    def builtins_of(package: Any) -> list[tuple[str, Any]]:
        return [(name, member) for name, member in inspect.getmembers(package) if language.core.is_builtin(member)]

    def patch_builtin(package: Any, *rest: Any) -> None:
        for name, member in builtins_of(package):
            if getattr(package, name) is member:
                interpreter._patch_attr(package, name, member, *rest)

    of_any = interpreter._get_np_dtype
    of_scalars = cache(of_any)

    def np_dtype_of(kind: Any) -> Any:
        return of_any(kind) if kind.scalar.is_ptr() else of_scalars(kind.scalar)

    interpreter._patch_builtin = patch_builtin
    interpreter._get_np_dtype = np_dtype_of
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=builder.options.debug)


if INTERPRETED:
    quicken()
