"""How long an answer may be: what a request asks for, what the server grants and what the context leaves."""

from __future__ import annotations

from collections.abc import Sequence as Batch
from typing import TYPE_CHECKING

from ewe.errors import PromptTooLongError
from ewe.server.errors import RefusedError

if TYPE_CHECKING:
    from ewe.engine.sequence import Sequence

_NO_LIMIT = (1 << 31) - 1  # tokens; the engine ends an answer where the context does


def tokens_to_ask(asked: int | None, default: int | None, most: int | None, field: str) -> int:
    """The max_tokens of a request for the engine; default, most: None for all that the context leaves.

    Raises RefusedError, which names the request's field, if more is asked for than the server grants.
    """
    most = most or _NO_LIMIT
    if asked is not None and asked > most:
        raise RefusedError(400, f"{field}: at most {most} here (server.max_tokens), got {asked}", param=field)
    return asked or min(default or most, most)


def check_prompts(sequences: Batch[Sequence], most: int | None) -> None:
    """Raises PromptTooLongError for a prompt of more tokens than the server takes."""
    longest = max(sequence.request.num_prompt_tokens for sequence in sequences)
    if most is not None and longest > most:
        raise PromptTooLongError(
            f"the prompt has {longest} tokens; this server takes {most} (server.max_prompt_tokens)"
        )


def check_room(sequences: Batch[Sequence], asked: int, field: str, max_model_len: int) -> None:
    """Raises RefusedError if a prompt leaves no room for so many tokens, which the engine would cut silently."""
    sequence = min(sequences, key=lambda item: item.request.max_tokens)
    if asked <= sequence.request.max_tokens:
        return
    prompt, kept = (
        sequence.request.num_prompt_tokens,
        sequence.request.start_position - len(sequence.request.prefix_ids),
    )
    units = f" less the {kept} of a memory unit (memory.unit_tokens)" if kept else ""
    is_pool = sequence.request.max_tokens < max_model_len - kept - prompt
    pool = ", and the KV pool holds no more (cache.num_blocks, cache.memory_gib)" if is_pool else ""
    message = (
        f"{field}: the prompt's {prompt} tokens and {asked} more are over the model's {max_model_len} "
        f"(model.max_model_len){units}{pool}: ask for at most {sequence.request.max_tokens}, or leave it out"
    )
    raise RefusedError(400, message, param=field, code="context_length_exceeded")
