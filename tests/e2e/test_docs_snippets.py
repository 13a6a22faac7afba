"""The Python of the documentation runs, page by page: paths lead to small files, the address to a server in a thread.

The page of agents and that of plugins have tests of their own (test_agent_endpoint.py, unit/test_registry.py).
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from real_models import model_path

from ewe import LLM
from ewe.longterm.store import MemoryStore
from ewe.retrieval.store import PassageStore
from ewe.types import Passage

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"agent.md", "batch.md", "plugins.md"}
ADDRESS = "http://127.0.0.1:8000"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    page: code
    for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    if page.name not in ELSEWHERE and (code := BLOCK.findall(page.read_text(encoding="utf-8")))
}


MODELS = ("LLM(", "OpenAI(", 'load_judge("builtin")', 'open_verifier("claims"')


def needs_model(code: str) -> bool:
    return any(name in code for name in MODELS)


def cases(with_model: bool) -> list[Any]:
    return [
        pytest.param(blocks, id=page.name)
        for page, blocks in PAGES.items()
        if any(map(needs_model, blocks)) is with_model
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the stores that the pages name."""
    monkeypatch.chdir(tmp_path)
    passage = Passage("bridge", "The bridge of Orvane was opened in 1932.", title="The bridge of Orvane")
    for name in ("my-store", "my-notes"):
        with PassageStore.create(tmp_path / name) as store:
            store.add([passage])
    MemoryStore.create(tmp_path / "my-memories").close()
    return tmp_path


def run(blocks: list[str], folder: Path, url: str = ADDRESS) -> None:
    """All blocks of a page in one namespace, as a reader would paste them one after the other."""
    paths = {'"path/to/model"': '"builtin"', ADDRESS: url}
    namespace: dict[str, Any] = {"__name__": "page"}
    with contextlib.ExitStack() as stack:
        for block in blocks:
            for name, path in paths.items():
                block = block.replace(name, path)
            before = list(namespace.values())
            exec(compile(block, "page", "exec"), namespace)
            for value in namespace.values():
                if isinstance(value, LLM) and not any(value is old for old in before):
                    stack.callback(value.close)


@pytest.mark.parametrize("blocks", cases(with_model=False))
def test_snippets_without_a_model(blocks: list[str], folder: Path) -> None:
    run(blocks, folder)


@pytest.mark.slow
@pytest.mark.skipif(not (model_path() / "model.safetensors").is_file(), reason="the built-in model has no weights here")
@pytest.mark.parametrize("blocks", cases(with_model=True))
def test_snippets_with_small_models_in_place_of_yours(blocks: list[str], folder: Path) -> None:
    if "OpenAI(" not in "".join(blocks):
        return run(blocks, folder)
    for package in ("anthropic", "cohere", "openai", "llguidance"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    from server_rig import serving

    from ewe.server.app import create_app
    from ewe.server.settings import ServerSettings

    with LLM("builtin") as llm, serving(create_app(llm, ServerSettings())) as url:
        run(blocks, folder, url)
