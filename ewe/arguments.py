"""What the calls of LLM and AsyncLLM are given, in one form."""

from __future__ import annotations

from collections.abc import Sequence as Batch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ewe.errors import ConfigError, InvalidRequestError
from ewe.placement import PlacedPrompt
from ewe.sampling import SamplingParams

if TYPE_CHECKING:
    from ewe.engine.input_processor import Prompt
    from ewe.longterm.service import MemoryService


def as_prompts(prompts: Prompt | Batch[Prompt]) -> list[Prompt]:
    """One prompt or many, as a list of them; a list of numbers is one prompt of token ids."""
    if isinstance(prompts, str | PlacedPrompt):
        return [prompts]
    listed = list(prompts)
    if listed and all(isinstance(item, int) for item in listed):
        return [listed]  # type: ignore[list-item]  # one prompt of token ids
    return listed  # type: ignore[return-value]


def as_params(
    params: SamplingParams | Batch[SamplingParams] | None, count: int, asked: str = "prompts"
) -> list[SamplingParams]:
    """One SamplingParams for each; raises InvalidRequestError for another number of them."""
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * count
    if len(params) != count:
        raise InvalidRequestError(f"{len(params)} SamplingParams for {count} {asked}: give one, or one for each")
    return list(params)


def memory_store(longterm: Any) -> tuple[MemoryService | None, str | Path | None]:
    """The service that was given, if it was one, and the folder of the store. Raises ConfigError."""
    if longterm is None or isinstance(longterm, str | Path):
        return None, longterm
    from ewe.longterm.service import MemoryService

    if not isinstance(longterm, MemoryService):
        raise ConfigError(f"longterm must be a folder or a MemoryService, got {type(longterm).__name__}")
    return longterm, longterm.store.path
