"""Names that settings, options and parameters accept beside those of registries, and what is said of unknown ones."""

import difflib
from collections.abc import Sequence

AUTO, NONE = "auto", "none"
"""Leaves the choice to the engine; switches off a datastore or a verifier."""

BUILTIN_JUDGE = "builtin"
"""The judge of the package, which the judge "auto" is where no model writes."""

WRITER = "writer"
"""The judge that is the model that writes."""

READER = "reader"
"""The judge that reads passages together: a chat model with an adapter of the package."""

WIKIPEDIA_SAMPLE = "wikipedia-sample"
"""The datastore of real text that is part of the package."""
DATASTORES = (
    *("builtin", WIKIPEDIA_SAMPLE, NONE),
    *("a folder made by `ewe index build`", "a JSONL file of passages", "the address of a store"),
)


def unknown(what: str, name: object, known: Sequence[str]) -> str:
    """What to tell who named something that is not known."""
    return f"unknown {what} {name!r}; {hint(name, known)}"


def hint(name: object, known: Sequence[str]) -> str:
    """The nearest known name, if one is near and what was named is no path, and all of them."""
    near = [] if "/" in str(name) else difflib.get_close_matches(str(name), known, n=1)
    return (f"did you mean {near[0]}? " if near else "") + f"known: {', '.join(known)}"
