"""Requests in OpenAI's batch format as rows of Ray Data: each actor of a pool has an engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ewe.errors import ConfigError
from ewe.server.batch.requests import BatchRequest, request_of
from ewe.server.batch.result_log import Reply
from ewe.server.settings import ServerSettings

if TYPE_CHECKING:
    import pyarrow

    from ewe.config import Config

_ROUNDS = 4  # batches are so many times as large as what is under way at once: few wait for a batch's longest answer


class BatchAnswerer:
    """For `Dataset.map_batches`, with tables of Arrow: columns custom_id, method, url and body (JSON, or a struct).

    max_concurrency: requests under way. Rows that come back have custom_id, status_code, request_id and, as JSON, body.
    Raises RefusedError if the engine is dead, and pydantic's ValidationError for a row that is no request.
    """

    def __init__(self, config: Config, server: ServerSettings, max_concurrency: int) -> None:
        from ewe.llm import LLM
        from ewe.server.offline import offline_caller

        self._places = max_concurrency
        self._caller = offline_caller(LLM(config=config), server, max_concurrency)

    def __call__(self, table: pyarrow.Table) -> dict[str, list[Any]]:
        """One row for each."""
        requests = [request_of(row) for row in table.to_pylist()]
        replies = asyncio.run(self._answer(requests))
        return {
            "custom_id": [request.custom_id for request in requests],
            "status_code": [reply.status for reply in replies],
            "request_id": [reply.headers.get("x-request-id", "") for reply in replies],
            "body": [json.dumps(reply.body) for reply in replies],
        }

    async def _answer(self, requests: Sequence[BatchRequest]) -> list[Reply]:
        places = asyncio.Semaphore(self._places)

        async def ask(request: BatchRequest) -> Reply:
            async with places:
                reply = await self._caller.answer(request)
            assert reply is not None  # it goes on until all are answered
            return reply

        return await asyncio.gather(*map(ask, requests))


def answer_with_ray(
    requests: Iterable[BatchRequest], config: Config, server: ServerSettings, max_concurrency: int, engines: int
) -> Iterator[tuple[str, Reply]]:
    """Each request's name and answer, as they come, from so many engines on Ray's machines, each with max_concurrency.

    Raises ConfigError where Ray is missing, and what Ray raises for an engine that cannot be started.
    """
    try:
        import ray.data
    except ModuleNotFoundError as error:
        raise ConfigError("Ray Data is not installed: pip install 'ewe-engine[ray]'") from error
    rows = [{**request.model_dump(exclude={"body"}), "body": json.dumps(request.body)} for request in requests]
    size = _ROUNDS * max_concurrency
    if not ray.is_initialized():
        ray.init()
    on_gpu = config.model.device != "cpu" and "GPU" in ray.cluster_resources()
    answered = ray.data.from_items(rows, override_num_blocks=-(-len(rows) // size)).map_batches(
        BatchAnswerer,
        fn_constructor_args=(config, server, max_concurrency),
        batch_format="pyarrow",
        batch_size=size,
        concurrency=engines,
        num_gpus=config.model.tensor_parallel if on_gpu else 0,
    )
    for row in answered.iter_rows():
        headers = {"x-request-id": row["request_id"]}
        yield row["custom_id"], Reply(row["status_code"], json.loads(row["body"]), headers)
