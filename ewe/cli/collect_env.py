"""`ewe collect-env`: what a bug report should say about the machine."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from ewe.config.cpu_count import usable_cpus

_PACKAGES = (
    *("ewe", "torch", "transformers", "triton", "faiss", "nupunkt", "tokenizers", "safetensors", "gguf", "peft"),
    "numpy",
)
# Those whose distributions have other names.
_DISTRIBUTIONS = {"ewe": ("ewe-engine",), "faiss": ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12")}


def collect_env(as_json: Annotated[bool, typer.Option("--json", help="As one JSON document.")] = False) -> None:
    """Print versions and hardware for a bug report."""
    facts = environment()
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        shown = ", ".join(value) if isinstance(value, list) else value
        print(f"{name:<{width}}  {'-' if shown in (None, '') else shown}")


def environment() -> dict[str, Any]:
    """Versions (None: not installed), CPU, RAM in GiB and GPUs of this machine."""
    import psutil

    facts: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    facts |= {name: _version(_DISTRIBUTIONS.get(name, (name,))) for name in _PACKAGES}
    ram_gib = round(psutil.virtual_memory().total / 2**30, 1)
    facts |= {"cpu": _cpu_name(), "cpus": usable_cpus(), "ram_gib": ram_gib}
    return facts | _accelerators()


def _version(distributions: tuple[str, ...]) -> str | None:
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _accelerators() -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        return {"cuda": None, "gpus": [], "torch_error": str(error)}
    gpus = []
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(index)
            gpus.append(f"{device.name}, {device.total_memory / 2**30:.1f} GiB, sm_{device.major}{device.minor}")
    return {"cuda": torch.version.cuda, "gpus": gpus}
