"""Whether a plug-in's records have the types that they say, and name sentences that are there.

What is wrong in them would fail far from the plug-in.
"""

from __future__ import annotations

from collections import abc
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ewe.types import Passage, VerificationResult

_ACCEPTED: dict[Any, Any] = {int: Integral, float: Real, tuple: (tuple, list)}  # numpy's numbers, and lists, will do
_CHECKED_BEFORE = (Passage, VerificationResult)  # when they are made, or come from their component
_IMPORTED_FOR_TYPES = {"Passage": Passage, "Job": Any, "Wording": Any}  # the engine makes the last two


def check_fields(record: Any, kind: type | None = None) -> None:
    """Raises TypeError for what is no record of a kind, and for a field of it, or of those in it, of another type."""
    if kind is not None and not isinstance(record, kind):
        raise TypeError(f"a {kind.__name__} is needed, got {record!r:.80}")
    for name, written, hint in _hints(record.__class__):
        value = getattr(record, name)
        if not _fits(value, hint):
            raise TypeError(f"{type(record).__name__}: {name} must be {written}, got {value!r:.80}")


def check_sentences(named: abc.Iterable[Any], end: int, by: str = "") -> None:
    """Raises ValueError for what is not the number of a sentence before `end`; by: what named it, for the message."""
    for sentence in named:
        if sentence not in range(end):
            raise ValueError(f"{by}there is no sentence {sentence!r} (the first is 0, and they end before {end})")


@cache
def _hints(kind: type) -> tuple[tuple[str, Any, Any], ...]:
    """Name, annotation as it is written, and type of each field."""
    from ewe.engine.sampling.sampler import Token  # Here, as it brings torch, and policies are known before that.

    hints = get_type_hints(kind, localns={**_IMPORTED_FOR_TYPES, "Token": Token})
    return tuple((field.name, field.type, hints[field.name]) for field in fields(kind))


def _fits(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if not isinstance(value, _ACCEPTED.get(origin, origin)):
        return False
    if origin is abc.Sequence or args[1:] == (...,):
        return all(_fits(item, args[0]) for item in value)
    if origin is tuple:
        return len(value) == len(args) and all(map(_fits, value, args))
    traits = getattr(origin, "__dataclass_params__", None)
    if traits is not None and traits.frozen and origin not in _CHECKED_BEFORE:  # what is not frozen is the engine's
        check_fields(value)
    return True
