"""Without a GPU, Triton's kernels run on the CPU under its interpreter.

Import it before anything that imports Triton, which reads the switch once, when it is imported.
"""

import math
import os
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

INTERPRETED = not torch.cuda.is_available()
if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"


def quicken() -> None:
    """The interpreter patches the language for each launch and each call between kernels' functions: done once, here.

    It makes its table of types for each array, and the type and shape of each result anew: kept. It also computes
    whether integers overflow, and says nothing of it without its option `debug`: left out.
    """
    from triton import language
    from triton.runtime import interpreter

    interpreter._patch_lang(SimpleNamespace(__globals__={"language": language, "core": language.core}))
    of_any = interpreter._get_np_dtype
    of_scalars = cache(of_any)

    def np_dtype_of(kind: Any) -> Any:
        return of_any(kind) if kind.scalar.is_ptr() else of_scalars(kind.scalar)

    @cache
    def sizes_of(*shape: int) -> tuple[Any, Any]:
        return language.constexpr(math.prod(shape)), language.tuple([language.constexpr(size) for size in shape])

    def make_tensor(tensor: Any, handle: Any, kind: Any) -> None:
        tensor.handle, tensor.type, tensor.dtype = handle, kind, kind.scalar
        tensor.numel, tensor.shape = sizes_of(*kind.shape) if kind.is_block() else sizes_of()

    make_block_type = language.block_type.__init__
    block_types: dict[Any, dict[str, Any]] = {}

    def kept_block_type(kind: Any, element: Any, shape: Any) -> None:
        if element.is_ptr():  # its name does not tell all of it
            make_block_type(kind, element, shape)
            return
        key = (element.name, *[getattr(size, "value", size) for size in shape])
        found = block_types.get(key)
        if found is None:
            make_block_type(kind, element, shape)
            block_types[key] = kind.__dict__
        else:
            kind.__dict__ = found

    interpreter._patch_lang = lambda _: interpreter._LangPatchScope()  # which has nothing to put back
    interpreter._get_np_dtype = np_dtype_of
    language.tensor.__init__ = make_tensor
    language.block_type.__init__ = kept_block_type
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=builder.options.debug)


if INTERPRETED:
    quicken()
