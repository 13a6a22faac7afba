"""The process of one rank beside the first: `python -m ewe.distributed.worker RANK PARTS FOLDER DEVICE`.

It obeys the messages on its standard input, in order, and ends with them.
"""

import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ewe.config import ModelConfig
from ewe.distributed.group import join, leave
from ewe.distributed.message import Message, read_message
from ewe.distributed.pool import ShardedPool
from ewe.distributed.rows import rows_from_arrays
from ewe.distributed.runner import ShardedRunner
from ewe.engine.fingerprint import weights_digest
from ewe.engine.loader import load_model
from ewe.engine.model_runner import layer_shapes
from ewe.kvcache.pool import HostBlocks


class Worker:
    """One part of the model with its pool; swapped: blocks in host memory, by the numbers that rank 0 gave them."""

    def __init__(self) -> None:
        self.model: Any = None
        self.pool: ShardedPool
        self.runner: ShardedRunner
        self.swapped: dict[int, HostBlocks] = {}

    def obey(self, message: Message) -> None:
        """Does what rank 0 does, too: load, pool, runner and digest while it starts, then passes and copies."""
        values, arrays = message.values, message.arrays
        match message.command:
            case "load":
                self.model = load_model(ModelConfig.model_validate(values["model"])).model
            case "pool":
                shapes, dtype = layer_shapes(self.model), getattr(torch, values["dtype"])
                self.pool = ShardedPool(shapes, values["num_blocks"], values["block_size"], dtype, self.model.device)
            case "runner":
                merge, attribution = values["merge"], values["attribution"]
                self.runner = ShardedRunner(self.model, self.pool, merge, attribution, cuda_graphs=False)
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
            case "zero_blocks":
                pool.zero_blocks(arrays["blocks"].tolist())
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
    """Serves until rank 0 says that it is over, or is no more."""
    rank, parts, folder, device = sys.argv[1:]
    messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, messages), daemon=True).start()
    (Path(folder) / f"ready-{rank}").touch()
    join(int(rank), int(parts), Path(folder), device)
    worker = Worker()
    while (message := messages.get()).command != "close":
        worker.obey(message)
    leave()
    os._exit(0)  # the progress bars of transformers leave a thread behind that takes up to 10 s to end


def _listen(stream: BinaryIO, messages: queue.SimpleQueue[Message]) -> None:
    """Queues what rank 0 sends; ends this process at once, even in the middle of a pass, if rank 0 has ended."""
    while (message := read_message(stream)) is not None:
        messages.put(message)
        if message.command == "close":
            return
    os._exit(1)


if __name__ == "__main__":
    main()
