"""Without a GPU, Triton's kernels run on the CPU under its interpreter.

Import it before anything that imports Triton, which reads the switch once, when it is imported.
"""

import math
import os
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
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

    quicken_types(language, interpreter)
    interpreter._patch_lang = lambda _: interpreter._LangPatchScope()  # which has nothing to put back
    interpreter._get_np_dtype = np_dtype_of
    language.tensor.__init__ = make_tensor
    language.block_type.__init__ = kept_block_type
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=builder.options.debug)


def quicken_types(language: Any, interpreter: Any) -> None:
    """Every operation asks which type its result has, and whether its operands have one shape: the answers are kept."""
    core, semantic = language.core, language.semantic.TritonSemantic
    cast = semantic.cast

    def unwrap(item: Any) -> Any:
        kind = type(item)
        if kind is core.constexpr:
            return item.value
        return any_unwrap(item) if kind in nested else item

    def cast_unless_same(self: Any, item: Any, kind: Any, *rounding: Any, **named: Any) -> Any:
        return item if item.type is kind else cast(self, item, kind, *rounding, **named)

    def spread(item: Any, shape: tuple[int, ...]) -> Any:
        data, kind = item.handle.data, item.type.scalar
        if item.type.is_block():
            if data.shape == shape:
                return item
            data = np.broadcast_to(data, shape)
        else:
            data = np.full(shape, data)
        return core.tensor(interpreter.TensorHandle(data, kind), core.block_type(kind, list(shape)))

    def broadcast(self: Any, one: Any, other: Any) -> Any:
        """By NumPy's rules, which are the interpreter's."""
        blocks = [item.handle.data.shape for item in (one, other) if item.type.is_block()]
        if not blocks:
            return one, other
        shape = blocks[0] if blocks[0] == blocks[-1] else np.broadcast_shapes(*blocks)
        return spread(one, shape), spread(other, shape)

    any_unwrap, nested = core._unwrap_if_constexpr, {list, tuple, core.tuple}
    core._unwrap_if_constexpr = unwrap
    semantic.computation_type_impl = cache(semantic.computation_type_impl)
    semantic.cast, semantic.broadcast_impl_value = cast_unless_same, broadcast


if INTERPRETED:
    quicken()
