"""guidellm as the client of the server, where it is installed (0.8 is known to work).

Its prompts are made-up text of about the wanted length.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serve_client import Load

_START_S = 60


def run_guidellm(port: int, load: Load, tokenizer: Any) -> list[tuple[float, float]]:
    """Per answered request the seconds to its first token and, on average, from token to token.

    Raises RuntimeError if guidellm is missing, fails, or has no request answered.
    """
    program = shutil.which("guidellm")
    if program is None:
        raise RuntimeError("guidellm is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer.save_pretrained(folder / "tokenizer")
        command = [program, "run", *_options(port, load, folder)]
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=load.seconds + 2 * _START_S, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"guidellm failed: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
        requests = json.loads((folder / "report.json").read_text())["benchmarks"][0]["requests"]
    if not requests["successful"]:
        raise RuntimeError(f"none of guidellm's {len(requests['errored'])} requests was answered")
    keys = ("time_to_first_token_ms", "inter_token_latency_ms")
    return [(item[keys[0]] / 1e3, item[keys[1]] / 1e3) for item in requests["successful"]]


def _options(port: int, load: Load, folder: Path) -> list[str]:
    backend = {
        "kind": "openai_http",
        "target": f"http://127.0.0.1:{port}",
        "request_format": "/v1/completions",
    }
    return [
        *("--backend", json.dumps(backend)),
        *("--tokenizer", f"kind=hf_auto,model={folder / 'tokenizer'}"),
        *("--data", f"kind=synthetic_text,prompt_tokens={load.prompt},output_tokens={load.answer}"),
        *("--profile", f"kind=poisson,rate={load.rate}"),
        *("--constraint", f"kind=max_duration,seconds={load.seconds}"),
        *("--output", f"kind=json,path={folder / 'report.json'}"),
        "--disable-console",
    ]


def guidellm_figures(
    load: Load, requests: list[tuple[float, float]], first: float, following: float
) -> dict[str, float]:
    """The figures of one load, goodput under limits in seconds for the first token and from token to token."""
    name = f"rate_{load.rate:g}_guidellm"
    firsts, gaps = np.array(requests).T
    figures: dict[str, float] = {f"{name}_requests": len(requests)}
    for percent in (50, 95):
        figures[f"{name}_first_token_ms_p{percent}"] = round(1e3 * float(np.percentile(firsts, percent)), 2)
        figures[f"{name}_request_mean_next_token_ms_p{percent}"] = round(1e3 * float(np.percentile(gaps, percent)), 3)
    good = int(((firsts <= first) & (gaps <= following)).sum())
    return figures | {f"{name}_goodput_per_s": round(good / load.seconds, 3)}
