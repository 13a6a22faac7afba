"""Capturing CUDA graphs while other threads use the device."""

import gc
from collections.abc import Callable
from typing import Any

import torch


def capture(call: Callable[[], object], memory: Any, device: torch.device) -> torch.cuda.CUDAGraph:
    """The graph of what `call` launches; it is recorded, not computed. memory: the pool that graphs share.

    Raises RuntimeError if `call` does what cannot be recorded; the stream is then the one of before.
    """
    graph = torch.cuda.CUDAGraph()
    # A graph that the collector frees in the middle of a capture would fail it.
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        # torch.cuda.graph leaves its own stream in place if it fails at the end; this puts ours back.
        # Other threads (encoders, judges) use the device meanwhile, and may.
        with (
            torch.cuda.stream(torch.cuda.current_stream(device)),
            torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"),
        ):
            call()
    finally:
        if was_collecting:
            gc.enable()
    return graph
