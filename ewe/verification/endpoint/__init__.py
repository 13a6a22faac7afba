"""Language models that others serve, or that live in this process, as completers of prompts; endpoints by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ewe.errors import ConfigError

if TYPE_CHECKING:
    from ewe.verification.endpoint.completer import EndpointCompleter

_PREFIX = "openai:"


def is_endpoint(name: str) -> bool:
    """Whether a name stands for an endpoint."""
    return name.startswith(_PREFIX)


def open_endpoint(name: str, stop: Sequence[str] = ()) -> EndpointCompleter:
    """The completer for "openai:MODEL@URL"; its key is read from EWE_API_KEY. Raises ConfigError for another form.

    stop: texts before which its answers end.
    """
    model, mark, url = name.removeprefix(_PREFIX).rpartition("@")
    if not mark or not model or not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"a language model behind an endpoint is named openai:MODEL@URL (http or https), not {name!r}"
        )
    from ewe.verification.endpoint.completer import EndpointCompleter

    return EndpointCompleter(model, url, stop=stop)
