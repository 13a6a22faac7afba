"""What HTTP adds to the time from token to token, while 16 answers are written at once.

The built-in model writes the same 16 answers three times: called from Python, as streams of the server (a chunk of text
per token), and as streams that also carry the engine's events (as the page reads them). The policy is `plain`: nothing
but decoding, so every token is sent and nothing hides the cost of sending it. As in `ewe serve`, the server shares its
process with the engine; its clients have a process of their own. Both time an answer from its first token to its last,
the server's where they are read.
"""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks import plots
from benchmarks.common import parse_arguments, report
from benchmarks.overhead_client import BATCH, HOST, prompt, time_streams


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    names = {"engine": "engine alone", "http": "over HTTP", "http_with_events": "over HTTP with events"}
    figures = plots.found(document["figures"], r"(\w+)_inter_token_ms")
    times = {text: figures[name] for name, text in names.items() if name in figures}
    title = f"From token to token, {document['settings']['batch']} answers at once"
    return [plots.Panel(title, "", "milliseconds", {"": times})]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    num_tokens = 8 if arguments.smoke else 200
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with open_engine(arguments.device) as llm, serving(llm) as port, ProcessPoolExecutor(1, context) as clients:
        ways: dict[str, Callable[[], float]] = {
            "engine": partial(time_engine, llm, num_tokens),
            "http": lambda: clients.submit(time_streams, port, num_tokens, False).result(),
            "http_with_events": lambda: clients.submit(time_streams, port, num_tokens, True).result(),
        }
        for way in ways.values():
            way()  # warms up
        # In turn, so that what else the machine does meets all of them.
        rounds = [{name: way() for name, way in ways.items()} for _ in range(arguments.repeats)]
    seconds = {name: statistics.median(taken[name] for taken in rounds) for name in ways}
    figures = {f"{name}_inter_token_ms": round(1000 * value, 4) for name, value in seconds.items()}
    for name in ("http", "http_with_events"):
        shares = [taken[name] / taken["engine"] - 1 for taken in rounds]
        figures[f"{name}_overhead_share"] = round(statistics.median(shares), 4)
    settings = {"model": "builtin", "policy": "plain", "batch": BATCH, "answer_tokens": num_tokens}
    plots.draw(arguments.plot, panels, report("server_overhead", arguments, settings, figures))


@contextmanager
def open_engine(device: str) -> Iterator[Any]:
    """The built-in model, which does nothing but write."""
    from ewe import LLM

    settings = {"model": {"name": "builtin", "device": device}, "policy": "plain"}
    with LLM(config={**settings, "scheduler": {"max_num_seqs": BATCH}}) as llm:
        yield llm


@contextmanager
def serving(llm: Any) -> Iterator[int]:
    """The server around the engine, in a thread; gives its port."""
    import uvicorn

    from ewe.server.app import create_app

    server = uvicorn.Server(uvicorn.Config(create_app(llm), host=HOST, port=0, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def time_engine(llm: Any, num_tokens: int) -> float:
    """Seconds from token to token in the engine, mean over all answers."""
    from ewe import SamplingParams
    from ewe.engine.request import Request

    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True)
    times: list[list[float]] = [[] for _ in range(BATCH)]
    done = threading.Semaphore(0)

    def listen(seen: list[float], event: Any) -> None:
        if event.kind == "draft":
            seen.append(time.perf_counter())
        elif event.kind == "finish":
            done.release()

    sequences = [
        llm.client.build(Request(prompt(number), params, listener=partial(listen, seen)))
        for number, seen in enumerate(times)
    ]
    for sequence in sequences:
        llm.client.submit(sequence, lambda answer: None)
    for _ in sequences:
        done.acquire()
    for sequence in sequences:
        llm.client.forget(sequence.request.id, abort=False)
    return statistics.mean((seen[-1] - seen[0]) / (num_tokens - 1) for seen in times)


if __name__ == "__main__":
    main()
