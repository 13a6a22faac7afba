"""What the stand-in for a GPU is at: copies under way, a graph that is recorded, waits.

A copy has arrived, or left, when somebody waits for it, and not before: what reads or writes host memory too early
shows.
"""

from __future__ import annotations

import math
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
_GARBAGE = 77

Recorded = tuple[Callable[[], Any], Sequence[torch.Tensor]]


@dataclass
class Copy:
    """A copy under way. values: what arrives in `host`; or, if it leaves from there, the bytes that must stay."""

    number: int
    host: torch.Tensor
    values: torch.Tensor
    arrives: bool
    place: str

    def end(self) -> None:
        """Raises AssertionError if its source was written under way."""
        if self.arrives:
            self.host.copy_(self.values)
        else:
            assert torch.equal(_bytes(self.host), self.values), f"written while a copy was under way: {self.place}"


@dataclass
class StandIn:
    """The device. waits: each moment in which the host waited for all of it, with the project's frames.

    launched: kernels and copies, by name; those of a graph count when it is replayed. replayed: how many each replay,
    which is one launch to the host, brought. current: the number of the device that kernels are launched on; all memory
    is on number 0. largest: bytes of the largest tensor with room.
    """

    waits: list[tuple[str, str]] = field(default_factory=list)
    recording: list[Recorded] | None = None
    launched: Counter[str] = field(default_factory=Counter)
    replayed: list[int] = field(default_factory=list)
    current: int = 0
    largest: float = math.inf
    num_copies: int = 0
    _copies: list[Copy] = field(default_factory=list)
    _pinned: dict[int, torch.Tensor] = field(default_factory=dict)

    def wait(self, what: str) -> None:
        """The host waits; as on a GPU an error while a graph is recorded."""
        self.refuse_in_graph(what)
        self.waits.append((what, _place()))
        self.settle(self.num_copies)

    def settle(self, num_copies: int) -> None:
        """The first so many copies have ended; raises AssertionError if the source of one was written under way."""
        ended = [copy for copy in self._copies if copy.number < num_copies]
        self._copies = [copy for copy in self._copies if copy.number >= num_copies]
        for copy in ended:
            copy.end()

    def refuse_in_graph(self, what: str) -> None:
        """Raises RuntimeError while a graph is recorded."""
        if self.recording is not None:
            raise RuntimeError(f"operation not permitted when stream is capturing: {what}")

    def allocate(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that is new on the device; raises torch.OutOfMemoryError if there is no room for it."""
        if tensor.nbytes > self.largest:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {tensor.nbytes} bytes.")
        return tensor

    def pin(self, host: torch.Tensor) -> torch.Tensor:
        """Notes that a tensor lies in pinned memory, and keeps it, so that its address stays its own."""
        self._pinned[host.untyped_storage().data_ptr()] = host
        return host

    def is_pinned(self, host: torch.Tensor) -> bool:
        """Whether it lies in pinned memory."""
        return host.untyped_storage().data_ptr() in self._pinned

    def download(self, source: torch.Tensor, host: torch.Tensor, non_blocking: bool) -> torch.Tensor:
        """Copies to the host; without blocking, `host` holds garbage until the copy has arrived."""
        self.refuse_in_graph("a copy to the host")
        self.launched["copy to the host"] += 1
        if not non_blocking:
            self.wait("a copy to the host")
            return host.copy_(source)
        host.fill_(_GARBAGE)
        # The device works in order: what is copied is what is there now.
        self._begin(host, source.clone(), arrives=True)
        return host

    def upload(self, host: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> None:
        """Copies from the host; from pinned memory, without blocking, its bytes must stay until somebody waits."""
        self.refuse_in_graph("a copy from the host")
        self.launched["copy from the host"] += 1
        self._arrive_first(host)
        target.copy_(host)
        if non_blocking and self.is_pinned(host):
            self._begin(host, _bytes(host).clone(), arrives=False)
        else:
            self.wait("a copy from the host")

    def _arrive_first(self, host: torch.Tensor) -> None:
        """Copies that are on their way to this memory end: the device works in order."""
        place = host.untyped_storage().data_ptr()
        for copy in self._copies:
            if copy.arrives and copy.host.untyped_storage().data_ptr() == place:
                copy.end()

    def run(self, call: Callable[[], Any], mutates: bool) -> Any:
        """Does something on the device. While a graph is recorded nothing is computed: results are undefined."""
        if self.recording is None:
            return call()
        result = None if mutates else call()
        self.recording.append((call, tensors_of(result)))
        return result

    def _begin(self, host: torch.Tensor, values: torch.Tensor, arrives: bool) -> None:
        self._copies.append(Copy(self.num_copies, host, values, arrives, _place()))
        self.num_copies += 1


DEVICE = StandIn()


def tensors_of(result: Any) -> list[torch.Tensor]:
    """The tensors among the results of an operation."""
    results = result if isinstance(result, list | tuple) else [result]
    return [item for item in results if isinstance(item, torch.Tensor)]


def _bytes(host: torch.Tensor) -> torch.Tensor:
    return host.contiguous().view(-1).view(torch.uint8)


def _place() -> str:
    frames = [frame for frame in traceback.extract_stack() if "/ewe" in frame.filename]
    return " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames[::-1][:5])
