"""Time to the first token when requests begin with the same system prompt, which is encoded once or for each of them.

16 requests arrive together, each with a short document and a question of its own. Measured, mean over the requests from
their arrival to their first token: `shared` (the prefix is one segment, and nobody has encoded it yet), `cached` (the
same when it is in the pool), `apart` (the same path, but requests with salts of their own, which share nothing) and
`bare` (units stand before the prompt, so that every context holds the system prompt).
"""

from __future__ import annotations

import argparse
import queue
import statistics
import time
from functools import partial
from typing import Any

from benchmarks.common import Sections, parse_arguments, pick_size, text_of
from benchmarks.rig import load_synthetic
from ewe import LLM, SamplingParams
from ewe.config.memory_mark import MARK
from ewe.engine.models.loader import LoadedModel
from ewe.engine.request import Request

REQUESTS, SYSTEM, QUESTION, DOCUMENT = 16, 500, 16, 32  # requests, and tokens of each text
_ONE = SamplingParams(max_tokens=1, ignore_eos=True)


class Requests:
    """Rounds of requests to one engine, whose questions and documents are new in every round."""

    def __init__(self, llm: LLM, mark: str, system_tokens: int) -> None:
        self._llm, self._mark, self._system_tokens = llm, mark, system_tokens
        self._seeds = iter(range(1, 1 << 30))

    def new_system(self) -> str:
        """A system prompt that nobody has seen."""
        return text_of(self._system_tokens, next(self._seeds))

    def first_token_s(self, system: str, salted: bool = False) -> float:
        """Seconds to the first token, mean over a round; salted: whether each request is the only one of its salt."""
        built = []
        for number in range(REQUESTS):
            question, document = (text_of(count, next(self._seeds)) for count in (QUESTION, DOCUMENT))
            salt = f"{document}{number}" if salted else ""
            request = Request(f"{system}{self._mark}{question}", _ONE, [document], salt=salt)
            built.append(self._llm.client.build(request))
        ended: queue.SimpleQueue[float] = queue.SimpleQueue()
        start = time.perf_counter()
        for sequence in built:
            self._llm.client.submit(sequence, partial(_note, ended))
        times = [ended.get() - start for _ in built]
        for sequence in built:
            self._llm.client.forget(sequence.request.id, abort=False)
        return statistics.mean(times)


def _note(ended: queue.SimpleQueue[float], answer: object) -> None:
    if isinstance(answer, Exception):
        raise answer
    ended.put(time.perf_counter())


def _rounds(loaded: LoadedModel, placement: str, system_tokens: int, repeats: int) -> dict[str, float]:
    """Median milliseconds per way under this placement."""
    memory = {"retrieval_units": 1, "verification_units": 0, "unit_tokens": DOCUMENT + 1, "placement": placement}
    cache = {"num_blocks": 2 + REQUESTS * (system_tokens + 4 * DOCUMENT) * 3 // 16}
    config = {"memory": memory, "cache": cache, "verifier": "none", "scheduler": {"max_num_seqs": REQUESTS}}
    found: dict[str, list[float]] = {}
    with LLM("synthetic", config=config, loaded=loaded) as llm:
        requests = Requests(llm, MARK if placement == "in_prompt" else "", system_tokens)
        requests.first_token_s(requests.new_system())
        for _ in range(repeats):
            system = requests.new_system()
            found.setdefault("bare" if placement == "bare" else "shared", []).append(requests.first_token_s(system))
            if placement == "in_prompt":
                found.setdefault("cached", []).append(requests.first_token_s(system))
                found.setdefault("apart", []).append(requests.first_token_s(requests.new_system(), salted=True))
    return {name: 1000 * statistics.median(times) for name, times in found.items()}


def _measure(loaded: LoadedModel, system_tokens: int, repeats: int) -> dict[str, Any]:
    times = _rounds(loaded, "in_prompt", system_tokens, repeats) | _rounds(loaded, "bare", system_tokens, repeats)
    figures = {f"{name}_ms": round(value, 1) for name, value in times.items()}
    return figures | {f"apart_over_{name}": round(times["apart"] / times[name], 2) for name in ("shared", "cached")}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", choices=["135m", "100m", "1b", "8b"], help="the model's shape")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, _add_options)
    size = pick_size(arguments)
    system_tokens = 40 if arguments.smoke else SYSTEM
    settings = {"model": size.name, "dtype": size.dtype, "requests": REQUESTS, "system_tokens": system_tokens}
    settings |= {"question_tokens": QUESTION, "document_tokens": DOCUMENT}
    sections = Sections("prefix_sharing", arguments, settings)
    loaded = load_synthetic(size, arguments.device)
    sections.take("time to the first token", lambda: _measure(loaded, system_tokens, arguments.repeats))
    sections.close()


if __name__ == "__main__":
    main()
