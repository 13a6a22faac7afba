"""How the texts that a pipeline asks for are drawn: each with its own random stream."""

import hashlib
from dataclasses import replace

from ewe.policies.steps import Ask
from ewe.types.sampling_params import SamplingParams


def seed_of(seed: int, index: int, number: int) -> int:
    """The seed, 63 bits, of the number-th text of the index-th answer of a request with this seed."""
    digest = hashlib.blake2b(f"{seed} {index} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def answer_params(own: SamplingParams, ask: Ask, num_written: int, seed: int) -> SamplingParams | None:
    """For a text that is to be the answer, or the rest of it after num_written tokens; None if it is full already."""
    left = own.max_tokens - num_written
    if left <= 0:
        return None
    limit = left if ask.max_tokens is None else min(ask.max_tokens, left)
    wanted = [number for number in (own.logprobs, ask.top_logprobs or None) if number is not None]
    return replace(
        own,
        n=1,
        seed=seed,
        max_tokens=limit,
        min_tokens=min(max(own.min_tokens - num_written, 0), limit),
        logprobs=max(wanted, default=None),
    )


def inner_params(own: SamplingParams, ask: Ask, seed: int) -> SamplingParams:
    """For a text that the reader does not get: no stops, biases, penalties or schema of the answer."""
    return SamplingParams(
        max_tokens=ask.max_tokens or own.max_tokens,
        temperature=own.temperature,
        top_p=own.top_p,
        top_k=own.top_k,
        min_p=own.min_p,
        seed=seed,
        logprobs=ask.top_logprobs or None,
        deadline_s=own.deadline_s,
    )
