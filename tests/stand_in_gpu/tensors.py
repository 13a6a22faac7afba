"""Tensors that say they lie on a CUDA device, and lie in host memory."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from stand_in_gpu.device import CPU, CUDA, DEVICE, tensors_of

_WAITING = {"equal", "is_nonzero", "item", "_local_scalar_dense", "masked_select", "nonzero", "_unique2", "unique_dim"}
# Outside inference mode torch takes these apart by the kind of the device, which it is not told.
_WHOLE = (torch.nn.functional.scaled_dot_product_attention, torch.where, torch.Tensor.where)
_FROM_NUMBERS = (torch.tensor, torch.as_tensor)
_INDEXING = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


class DeviceTensor(torch.Tensor):
    """A tensor on the stand-in. To torch it is one without data (meta); `inner` has the data, in host memory."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> DeviceTensor:
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        tensor: DeviceTensor = torch.Tensor._make_wrapper_subclass(cls, inner.shape, device="meta", **layout)
        tensor.inner = inner
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_cpu = is_meta = property(lambda self: False)

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.inner.untyped_storage()

    def tolist(self) -> Any:
        DEVICE.wait("tolist")
        return self.inner.tolist()

    def __deepcopy__(self, memo: Any) -> DeviceTensor:
        return DeviceTensor(self.inner.clone())

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _operate(func, args, kwargs or {})


def _operate(func: Any, args: Any, kwargs: Any) -> Any:
    """One of torch's operations, with a DeviceTensor somewhere among its arguments."""
    name = func._schema.name.removeprefix("aten::")
    if name == "copy_" and not all(isinstance(item, DeviceTensor) for item in args[:2]):
        return _copy(*args, **kwargs)
    if name in _WAITING:
        DEVICE.wait(name)
    if name in ("index", "index_put_", "index_put"):
        _wait_for_indices(args[1])
    else:
        tree_map(lambda item: _refuse_host(name, item), (args, kwargs))
    inner_args, inner_kwargs = tree_map(inner_of, (args, kwargs))
    if inner_kwargs.get("device") is not None:
        inner_kwargs["device"] = CPU
    inner_kwargs.pop("pin_memory", None)
    mutates = func._schema.is_mutable
    result = DEVICE.run(lambda: func(*inner_args, **inner_kwargs), mutates)
    is_new = _is_new(result, inner_args)
    for item in tensors_of(result) if is_new else ():
        DEVICE.allocate(item)
    if mutates or (is_new and not name.startswith(("empty", "new_empty"))):
        DEVICE.launched[name] += 1
    if mutates:
        return kwargs.get("out", args[0])
    return tree_map(outer_of, result)


def _is_new(result: Any, arguments: Any) -> bool:
    """Whether a result lies in memory of its own, so that something has to write it."""
    held = {item.untyped_storage().data_ptr() for item in tree_leaves(arguments) if isinstance(item, torch.Tensor)}
    return any(item.untyped_storage().data_ptr() not in held for item in tensors_of(result))


def _copy(target: Any, source: Any, non_blocking: bool = False) -> Any:
    """target.copy_(source), one of them on the host."""
    if not isinstance(target, DeviceTensor):
        return DEVICE.download(source.inner, target, non_blocking and DEVICE.is_pinned(target))
    DEVICE.upload(source, target.inner, non_blocking)
    return target


class Functions(TorchFunctionMode):
    """What has to be caught before torch asks for a real device: new tensors, copies, indexing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        on_device = any(isinstance(item, DeviceTensor) for item in (*args, *kwargs.values()))
        if func in (torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu):
            return self._move(func, args, kwargs)
        if func is torch.Tensor.is_pinned:
            return not isinstance(args[0], DeviceTensor) and DEVICE.is_pinned(args[0])
        if kwargs.pop("pin_memory", False) or func is torch.Tensor.pin_memory:
            return DEVICE.pin(args[0].clone() if func is torch.Tensor.pin_memory else func(*args, **kwargs))
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            del kwargs["device"]
            if func in _FROM_NUMBERS:
                DEVICE.wait("numbers copied from the host")
            return func(*args, **kwargs) if on_device else outer_of(DEVICE.allocate(func(*args, **kwargs)))
        if on_device and func in _INDEXING:
            return _index(func, *args)
        if on_device and func in _WHOLE:
            tree_map(lambda item: _refuse_host(func.__name__, item), (args, kwargs))
            inner_args, inner_kwargs = tree_map(inner_of, (args, kwargs))
            DEVICE.launched[func.__name__] += 1
            return outer_of(DEVICE.run(lambda: func(*inner_args, **inner_kwargs), False))
        return func(*args, **kwargs)

    def _move(self, func: Any, args: Any, kwargs: Any) -> Any:
        tensor, *rest = args
        device = {torch.Tensor.cuda: CUDA, torch.Tensor.cpu: CPU}.get(func, kwargs.pop("device", None))
        dtype, non_blocking = kwargs.pop("dtype", None), kwargs.pop("non_blocking", False)
        for item in rest:
            if isinstance(item, torch.dtype):
                dtype = item
            elif isinstance(item, torch.Tensor):
                device, dtype = item.device, item.dtype
            elif isinstance(item, bool):
                non_blocking = item
            elif item is not None:
                device = torch.device(item)
        is_here = isinstance(tensor, DeviceTensor)
        wants_device = is_here if device is None else torch.device(device).type == "cuda"
        if is_here and not wants_device:
            inner = tensor.inner if dtype is None else tensor.inner.to(dtype)
            host = torch.empty_like(inner)
            return DEVICE.download(inner, DEVICE.pin(host) if non_blocking else host, non_blocking)
        if wants_device and not is_here:
            plain = tensor.detach().as_subclass(torch.Tensor)
            moved = DEVICE.allocate(torch.empty_like(plain))
            DEVICE.upload(plain, moved, non_blocking)
            tensor = DeviceTensor(moved)
        wanted = {"dtype": dtype, **kwargs}
        return tensor if wanted == {"dtype": None} else torch.Tensor.to(tensor, **wanted)


def _index(func: Any, tensor: DeviceTensor, index: Any, *value: Any) -> Any:
    """tensor[index], or tensor[index] = value."""
    parts = index if isinstance(index, tuple) else (index,)
    indices = [part for part in parts if isinstance(part, list | torch.Tensor)]
    _wait_for_indices(indices)
    if indices or value:
        DEVICE.launched["index"] += 1
    inner_index, inner_value = tree_map(inner_of, (index, value))
    return outer_of(DEVICE.run(lambda: func(tensor.inner, inner_index, *inner_value), bool(value)))


def _wait_for_indices(indices: Any) -> None:
    for item in indices:
        if item is not None and (not isinstance(item, DeviceTensor) or item.dtype in (torch.bool, torch.uint8)):
            DEVICE.wait("indices on the host, or a mask")


def _refuse_host(name: str, item: Any) -> Any:
    if isinstance(item, torch.Tensor) and not isinstance(item, DeviceTensor) and item.dim():
        raise RuntimeError(f"{name}: expected all tensors on {CUDA}, found {tuple(item.shape)} on {item.device}")
    return item


def inner_of(item: Any) -> Any:
    """What an operation really works on."""
    return item.inner if isinstance(item, DeviceTensor) else item


def outer_of(item: Any) -> Any:
    """A result, on the device."""
    return DeviceTensor(item) if type(item) is torch.Tensor else item
