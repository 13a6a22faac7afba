"""The process of one rank beside the first: `python -m ewe.engine.distributed.worker RANK PARTS STORE`.

Or one of torchrun's.

It obeys the messages of rank 0, in order, and ends with them.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import torch
from torch import distributed

from ewe.config import ModelConfig
from ewe.engine.distributed.group import join, leave, wait_for_all
from ewe.engine.distributed.link import beat
from ewe.engine.distributed.message import Message, read_message
from ewe.engine.distributed.row_arrays import rows_from_arrays
from ewe.engine.distributed.runner import ShardedRunner
from ewe.engine.distributed.sharded_pool import ShardedPool
from ewe.engine.kvcache.pool import HostBlocks
from ewe.engine.model_executor.fingerprint import weights_digest
from ewe.engine.model_executor.model_runner import layer_shapes
from ewe.engine.models.loader import load_model

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store


class Worker:
    """One part of the model with its pool; swapped: blocks in host memory, by the numbers that rank 0 gave them.

    join: makes this process, on a device, one of the group. when_ready: called when the first pass may come. name: the
    model's on this machine, None if it is called as on rank 0's.
    """

    def __init__(
        self,
        join: Callable[[str], object] = lambda device: None,
        when_ready: Callable[[], object] = lambda: None,
        name: str | None = None,
    ) -> None:
        self._join, self._when_ready, self._name = join, when_ready, name
        self.model: Any = None
        self.pool: ShardedPool
        self.runner: ShardedRunner
        self.swapped: dict[int, HostBlocks] = {}

    def obey(self, message: Message) -> None:
        """Does what rank 0 does, too: load, pool, runner and digest while it starts, then passes and copies."""
        values, arrays = message.values, message.arrays
        match message.command:
            case "load":
                self._join(values["device"])
                own = {} if self._name is None else {"name": self._name}
                self.model = load_model(ModelConfig.model_validate(values["model"] | own)).model
            case "pool":
                shapes, dtype = layer_shapes(self.model), getattr(torch, values["dtype"])
                self.pool = ShardedPool(shapes, values["num_blocks"], values["block_size"], dtype, self.model.device)
            case "runner":
                merge, attribution = values["merge"], values["attribution"]
                self.runner = ShardedRunner(self.model, self.pool, merge, attribution, cuda_graphs=False)
                self._when_ready()
                wait_for_all()
            case "digest":
                weights_digest(self.model)
            case "forward":
                self.runner.forward(rows_from_arrays(arrays, self.pool.block_size))
            case _:
                self._change_pool(message)

    def _change_pool(self, message: Message) -> None:
        values, arrays, pool = message.values, message.arrays, self.pool
        match message.command:
            case "copy_blocks":
                pool.copy_blocks(arrays["pairs"].tolist())
            case "read_blocks":
                for number in values["dropped"]:
                    del self.swapped[number]
                self.swapped[values["number"]] = pool.read_blocks(arrays["blocks"].tolist())
            case "write_blocks":
                pool.write_blocks(arrays["blocks"].tolist(), self.swapped[values["number"]])
            case "write_slots":
                pool.write_slots(arrays["slots"], torch.from_numpy(arrays["stored"]))
            case "scale_keys":
                pool.scale_keys(arrays["slots"], values["factor"])
            case unknown:
                raise ValueError(f"rank 0 sent the unknown command {unknown!r}")


def main() -> None:
    """The process that rank 0 has started, with its end of their socket as standard input."""
    rank, parts, path = sys.argv[1:]
    store = distributed.FileStore(path, int(parts))  # type: ignore[attr-defined]
    serve(socket.socket(fileno=0), store, int(rank), int(parts))


def serve(connection: socket.socket, store: Store, rank: int, parts: int, name: str | None = None) -> NoReturn:
    """Obeys until rank 0 says that it is over, or is no more; then this process ends."""
    messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection.makefile("rb"), messages), daemon=True).start()
    worker = Worker(lambda device: join(rank, parts, store, device), lambda: beat(connection), name)
    code = 1
    try:
        connection.sendall(b".")  # joining can be waited for from now on
        while (message := messages.get()).command != "close":
            worker.obey(message)
        leave()
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)  # the progress bars of transformers leave a thread behind that takes up to 10 s to end


def _listen(stream: BinaryIO, messages: queue.SimpleQueue[Message]) -> None:
    """Queues what rank 0 sends; ends this process at once, even in the middle of a pass, if rank 0 has ended."""
    with suppress(OSError):
        while (message := read_message(stream)) is not None:
            messages.put(message)
            if message.command == "close":
                return
    os._exit(1)


if __name__ == "__main__":
    main()
