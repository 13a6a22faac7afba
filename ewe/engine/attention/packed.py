"""Small tensors on their way between the host, where they are filled and read, and the device."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch

_DTYPES = {np.dtype(np.int32): torch.int32, np.dtype(np.int64): torch.int64, np.dtype(np.float32): torch.float32}
# Each tensor begins at a multiple of this, or Triton would compile a kernel for each alignment.
_ALIGNMENT = 16

Shape = tuple[int, ...]


class Packed:
    """Per name an array in `host`, to be written, and a tensor in `device` that stays where it is.

    layout: shape and dtype (int32, int64 or float32) per name. Both sides are zero at first.
    """

    def __init__(self, layout: Mapping[str, tuple[Shape, npt.DTypeLike]], device: torch.device) -> None:
        sizes = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in layout.values()]
        self._sizes = {name: np.dtype(dtype).itemsize for name, (_, dtype) in layout.items()}
        ends = np.cumsum([-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes], dtype=np.int64).tolist()
        self._staging = torch.zeros(ends[-1], dtype=torch.uint8, pin_memory=device.type == "cuda")
        self._moved = torch.zeros(ends[-1], dtype=torch.uint8, device=device)
        self._copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.host: dict[str, npt.NDArray[np.generic]] = {}
        self.device: dict[str, torch.Tensor] = {}
        self._begins = dict(zip(layout, [0, *ends[:-1]], strict=True))
        staging = self._staging.numpy()
        for (name, (shape, dtype)), begin, size in zip(layout.items(), [0, *ends[:-1]], sizes, strict=True):
            kind = np.dtype(dtype)
            self.host[name] = staging[begin : begin + size].view(kind).reshape(shape)
            self.device[name] = self._moved[begin : begin + size].view(_DTYPES[kind]).view(shape)

    def wait(self) -> None:
        """Returns once the last upload has read the host's side, which may then be written again."""
        if self._copied is not None:
            self._copied.synchronize()

    def upload(self, last: str | None = None, count: int = 0) -> None:
        """Copies the host's side to the device, in the order of the current stream, without waiting for it.

        last: where to stop, after the first `count` numbers of this array; None: at the end.
        """
        end = len(self._staging) if last is None else self._begins[last] + count * self._sizes[last]
        self._moved[:end].copy_(self._staging[:end], non_blocking=True)
        if self._copied is not None:
            self._copied.record()


def to_device(arrays: Mapping[str, npt.NDArray[np.generic]], device: torch.device) -> dict[str, torch.Tensor]:
    """The arrays (int32, int64 or float32) as tensors on the device, moved in one copy for which nothing waits.

    On a CPU they are the arrays themselves.
    """
    if device.type == "cpu":
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    packed = Packed({name: (array.shape, array.dtype) for name, array in arrays.items()}, device)
    for name, array in arrays.items():
        packed.host[name][...] = array
    packed.upload()
    return packed.device


def to_host(tensors: Mapping[str, torch.Tensor]) -> Callable[[], dict[str, torch.Tensor]]:
    """Copies of tensors of one device, on their way to the host; what is returned waits for them."""
    copies = {name: tensor.to("cpu", non_blocking=True, copy=True) for name, tensor in tensors.items()}
    device = next(iter(tensors.values())).device
    if device.type != "cuda":
        return lambda: copies
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))

    def arrived() -> dict[str, torch.Tensor]:
        event.synchronize()
        return copies

    return arrived
