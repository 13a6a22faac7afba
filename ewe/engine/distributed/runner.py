"""Forward passes that every rank runs over its own part of the model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import distributed

from ewe.engine.distributed.executor import Executor
from ewe.engine.distributed.message import Message
from ewe.engine.distributed.row_arrays import rows_to_arrays
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow, ModelRunner
from ewe.engine.sampling.sampler import SamplingRow


class ShardedRunner(ModelRunner):
    """A runner of one part; all ranks must run the same passes. Shares of attention are means over all ranks' heads."""

    def _attention(
        self, rows: Sequence[ForwardRow], shares: torch.Tensor | None
    ) -> list[npt.NDArray[np.float32] | None]:
        if shares is not None:
            distributed.all_reduce(shares)
            shares /= distributed.get_world_size()
        return super()._attention(rows, shares)


class DriverRunner(ShardedRunner):
    """The runner of rank 0, which has the workers run what it runs, and ends them when it is closed."""

    def __init__(
        self, executor: Executor, model: Any, pool: KVPool, merge: str, attribution: bool, *others: Any
    ) -> None:
        self._executor = executor
        executor.send(Message("runner", {"merge": merge, "attribution": attribution}))
        super().__init__(model, pool, merge, attribution, *others)  # type: ignore[arg-type]

    def forward(self, rows: Sequence[ForwardRow], draws: Sequence[SamplingRow] | None = None) -> ForwardResult:
        """As ModelRunner's; raises EngineDeadError if it fails, for the ranks may no longer agree."""
        self._executor.send(Message("forward", arrays=rows_to_arrays(rows, self._pool.block_size)))
        try:
            return super().forward(rows, draws)
        except Exception as error:
            raise self._executor.broken(error) from error

    def close(self) -> None:
        """Ends the workers, too."""
        super().close()
        self._executor.close()
