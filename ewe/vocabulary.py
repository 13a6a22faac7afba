"""Names that settings, options and parameters accept: the same in Python, in YAML and on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal, get_args

PolicyName = Literal[
    "ewe", "rag", "flare", "plain", "nest", "ra", "dragin", "cove", "cove+retrieval", "self-rag-like", "rewrite-after"
]
VerifierName = Literal["auto", "claims", "values", "builtin", "none"]

AUTO, NONE = "auto", "none"
"""Leaves the choice of a verifier to the engine; switches off a datastore or a verifier."""

POLICIES: tuple[str, ...] = get_args(PolicyName)
PIPELINES = ("ra", "dragin", "cove", "cove+retrieval", "self-rag-like", "rewrite-after")
"""The policies that ask the engine several times for one answer."""
CHECKING_POLICIES = ("ewe", "rewrite-after")
"""The policies that have sentences checked."""
VERIFIERS: tuple[str, ...] = get_args(VerifierName)
WIKIPEDIA_SAMPLE = "wikipedia-sample"
"""The datastore of real text that is part of the package."""
DATASTORES = ("builtin", WIKIPEDIA_SAMPLE, NONE, "a folder made by `ewe index build`", "a JSONL file of passages")
JUDGES = ("builtin", "base", "values", "a model's folder or hub id", "openai:MODEL@URL")


def unknown(what: str, name: object, known: Sequence[str]) -> str:
    """What to tell who named something that is not known."""
    return f"unknown {what} {name!r}; {hint(name, known)}"


def hint(name: object, known: Sequence[str]) -> str:
    """The nearest known name, if one is near, and all of them."""
    near = difflib.get_close_matches(str(name), known, n=1)
    return (f"did you mean {near[0]}? " if near else "") + f"known: {', '.join(known)}"
