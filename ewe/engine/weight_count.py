"""How many tensors of a checkpoint transformers has read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from transformers.utils import logging

_BAR = "Loading weights"
OnCount = Callable[[int, int], object]


@contextmanager
def counted_weights(on_count: OnCount) -> Iterator[None]:
    """Inside, `on_count(done, total)` hears of every tensor that is read. Older transformers tell of none."""
    set_hook = getattr(logging, "set_tqdm_hook", None)
    if set_hook is None:
        yield
        return

    def watch(make: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if args and options.get("desc") == _BAR:
            options = {**options, "total": len(args[0])}
            args = (_counted(args[0], on_count), *args[1:])
        return make(*args, **options)

    previous = set_hook(watch)
    try:
        yield
    finally:
        set_hook(previous)


def _counted(items: Collection[Any], on_count: OnCount) -> Iterator[Any]:
    for done, item in enumerate(items, 1):
        yield item
        on_count(done, len(items))
