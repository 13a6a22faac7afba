"""EWE: language models that write text which can be checked, with an explicit working memory."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ewe.config import Config
from ewe.errors import EWEError
from ewe.types import Claim, Evidence, Generation, MemoryOptions, Passage, ScoredPassage, Sentence, Verdict
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.async_llm import AsyncLLM
    from ewe.llm import LLM
    from ewe.longterm.agent import VeriMemAgent
    from ewe.longterm.memory_api import Memory

__all__ = [
    "LLM",
    "AsyncLLM",
    "Claim",
    "Config",
    "EWEError",
    "Evidence",
    "Generation",
    "Memory",
    "MemoryOptions",
    "Passage",
    "SamplingParams",
    "ScoredPassage",
    "Sentence",
    "Verdict",
    "VeriMemAgent",
]


_LAZY = {
    "LLM": "ewe.llm",
    "AsyncLLM": "ewe.async_llm",
    "Memory": "ewe.longterm.memory_api",
    "VeriMemAgent": "ewe.longterm.agent",
}


def __getattr__(name: str) -> Any:
    # torch and transformers take seconds to import: only code that asks for an engine pays for them.
    if name not in _LAZY:
        raise AttributeError(f"module 'ewe' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
