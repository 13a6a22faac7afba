"""A stand-in for one CUDA device, for machines without any.

It finds operations over two devices, waits where nothing should wait, host memory that is read before a copy has
arrived or written before one has left, and graphs with something in them that changes later. Kernels run under Triton's
interpreter. It says nothing about speed, nor of what kernels compile to. `make gpu-rehearsal` runs the tests for GPUs
on it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton_interpreter  # noqa: F401  (before anything that imports Triton)
from triton.runtime.interpreter import GridExecutor

from stand_in_gpu.device import DEVICE, Recorded, tensors_of
from stand_in_gpu.tensors import DeviceTensor, Functions, inner_of

__all__ = ["DEVICE", "DeviceTensor", "in_place"]

_GIB = 1 << 30
_launch = GridExecutor.__call__


class Event:
    """torch.cuda.Event: waiting for it ends the copies that were begun before it was recorded.

    Without a stream it is recorded on the current device, where there are no copies unless that is number 0.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._num_copies = 0

    def record(self, *stream: Any) -> None:
        DEVICE.refuse_in_graph("an event")
        self._num_copies = DEVICE.num_copies if stream or not DEVICE.current else 0

    def synchronize(self) -> None:
        DEVICE.settle(self._num_copies)


class Stream:
    """torch.cuda.Stream: all do their work at once, but they can be told apart."""

    def __init__(self, *device: Any) -> None:
        pass

    def synchronize(self) -> None:
        DEVICE.wait("the stream")


_DEFAULT_STREAM = Stream()
_streams = threading.local()


@contextlib.contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    """torch.cuda.stream."""
    before, _streams.current = current_stream(), stream
    try:
        yield
    finally:
        _streams.current = before


def current_stream(*device: Any) -> Stream:
    """torch.cuda.current_stream, of this thread."""
    return getattr(_streams, "current", _DEFAULT_STREAM)


class Graph:
    """torch.cuda.CUDAGraph: does again what was recorded, with the tensors of then."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.launches: Counter[str] = Counter()

    def replay(self) -> None:
        DEVICE.launched += self.launches
        DEVICE.replayed.append(self.launches.total())
        for call, results in self.recorded:
            for old, new in zip(results, tensors_of(call()), strict=False):  # what works in place has none
                if old.untyped_storage().data_ptr() != new.untyped_storage().data_ptr():
                    old.copy_(new)


@contextlib.contextmanager
def recording(graph: Graph, **options: Any) -> Iterator[None]:
    """torch.cuda.graph."""
    DEVICE.wait("a graph is recorded")
    DEVICE.recording, before = graph.recorded, DEVICE.launched.copy()
    try:
        yield
    finally:
        DEVICE.recording, graph.launches, DEVICE.launched = None, DEVICE.launched - before, before


def launch(executor: GridExecutor, *arguments: Any, **options: Any) -> None:
    """A kernel, whose tensors must all lie on the device."""
    for item in (*arguments, *options.values()):
        if isinstance(item, torch.Tensor) and not isinstance(item, DeviceTensor):
            raise ValueError(f"pointer argument cannot be accessed from Triton: {tuple(item.shape)} on {item.device}")
    if DEVICE.current:
        raise ValueError(f"launched on device {DEVICE.current}, which cannot access the memory of device 0")
    DEVICE.launched[executor.fn.__name__] += 1
    inner = [inner_of(item) for item in arguments]
    named = {name: inner_of(item) for name, item in options.items()}
    DEVICE.run(lambda: _launch(executor, *inner, **named), mutates=True)


@contextlib.contextmanager
def current(device: torch.device) -> Iterator[None]:
    """torch.cuda.device."""
    before, DEVICE.current = DEVICE.current, device.index or 0
    try:
        yield
    finally:
        DEVICE.current = before


_CUDA = {
    "CUDAGraph": Graph,
    "Event": Event,
    "Stream": Stream,
    "current_device": lambda: DEVICE.current,
    "current_stream": current_stream,
    "device": current,
    "device_count": lambda: 1,
    "empty_cache": lambda: None,
    "get_device_capability": lambda *device: (9, 0),
    "get_device_name": lambda *device: "a stand-in",
    "get_device_properties": lambda *device: SimpleNamespace(
        name="a stand-in", major=9, minor=0, multi_processor_count=4, total_memory=8 * _GIB
    ),
    "get_rng_state": lambda *device: torch.random.get_rng_state(),
    "graph": recording,
    "graph_pool_handle": lambda: (0, 0),
    "is_available": lambda: True,
    "manual_seed_all": lambda *seed: None,
    "mem_get_info": lambda *device: (4 * _GIB, 8 * _GIB),
    "set_rng_state": lambda *state: None,
    "stream": on_stream,
    "synchronize": lambda *device: DEVICE.wait("the device"),
}


@contextlib.contextmanager
def in_place() -> Iterator[None]:
    """torch finds one CUDA device, in all threads that are started from here on; DEVICE.waits is empty at first."""
    run = threading.Thread.run

    def run_on_device(thread: threading.Thread) -> None:
        with Functions():
            run(thread)

    DEVICE.waits.clear()
    with pytest.MonkeyPatch.context() as patch, Functions():
        for name, value in _CUDA.items():
            patch.setattr(torch.cuda, name, value)
        patch.setattr(threading.Thread, "run", run_on_device)
        patch.setattr(GridExecutor, "__call__", launch)
        yield
