"""What settings ask of the machine that they are to be used on; looked at without loading weights or making a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ewe.components import check_verifier_of
from ewe.config import Config, is_postgres
from ewe.config.addons import longterm
from ewe.engine.models.model_files import model_source
from ewe.engine.startup.preflight import demands
from ewe.errors import ConfigError, EWEError
from ewe.open_datastore import open_passages

if TYPE_CHECKING:
    from ewe.server.settings import ServerSettings

_SERVER_PACKAGES = ("fastapi", "httpx", "prometheus_client", "python_multipart", "uvicorn")


@dataclass(frozen=True, slots=True)
class Found:
    """problems: why a server would not start, or not work; notes: what cannot be told from here, or is worth a look."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def look_at(config: Config, server: ServerSettings | None = None, notes: list[str] | None = None) -> Found:
    """What is found; server: None where there is to be none; notes: what was noticed before."""
    checks: list[Callable[[], object]] = [
        *demands(config),
        partial(check_verifier_of, config),
        *_evidence_checks(config),
    ]
    if server is not None:
        checks += _server_checks(server)
    findings = Found(list(dict.fromkeys(_problems(checks))), list(notes or ()))
    findings.notes.extend(_hub_notes(config))
    if server is not None and not findings.problems:  # they may be about keys that cannot be read
        from ewe.server.observability.start_report import warnings

        findings.notes.extend(line.removeprefix("warning: ") for line in warnings(server))
    return findings


def _problems(checks: list[Callable[[], object]]) -> Iterator[str]:
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield from error.problems
        except (EWEError, OSError) as error:
            yield str(error)


def _evidence_checks(config: Config) -> Iterator[Callable[[], object]]:
    yield partial(_check_datastore, config.datastore)
    for name in ("encoder", "reranker"):
        yield partial(_check_sentence_model, f"retrieval.{name}", getattr(config.retrieval, name))
    yield partial(_check_sources, config)
    yield partial(_check_memories, config.longterm.path)


def _check_datastore(source: str | None) -> None:
    if source is None:
        return
    from ewe.retrieval.vector_stores.connect import connect, is_address

    opened = connect(source) if is_address(source) else open_passages(source)
    if hasattr(opened, "close"):
        opened.close()


def _check_sentence_model(setting: str, name: str | None) -> None:
    if name is not None:
        from ewe.retrieval.encoders import sentence_model_folder

        try:
            sentence_model_folder(name)
        except ConfigError as error:
            raise ConfigError(f"{setting}: {error}") from error


def _check_sources(config: Config) -> None:
    if config.retrieval.sources is not None:
        from ewe.retrieval.open_retriever import veracity_scorer

        veracity_scorer(config.retrieval)


def _check_memories(path: str | None) -> None:
    if path is None:
        return
    if not is_postgres(path):
        return _check_place("longterm.path", Path(path))
    longterm("store.postgres_connection").check_connection(path)


def _check_place(setting: str, folder: Path) -> None:
    """Raises ConfigError unless the folder can be written to, or made; whoever runs this must be who will do that."""
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    shown = place if folder.is_absolute() else Path(os.path.relpath(place))
    if not place.is_dir():
        raise ConfigError(f"{setting}: {shown} is no folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(f"{setting}: {shown} cannot be written to by this user")


def _server_checks(server: ServerSettings) -> Iterator[Callable[[], object]]:
    yield _check_server_packages
    yield server.keys
    if server.batch_folder is not None:
        yield partial(_check_place, "server.batch_folder", server.batch_folder)
    yield partial(_check_port, server)


def _check_server_packages() -> None:
    missing = [name for name in _SERVER_PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the server needs {', '.join(missing)}: pip install 'ewe-engine[serve]'")


def _check_port(server: ServerSettings) -> None:
    from ewe.server.http.listener import listen

    listen(server).close()


def _hub_notes(config: Config) -> Iterator[str]:
    """Names that stand for a model on the hub, which only loading it can find."""
    try:
        place = model_source(config.model).place
    except ConfigError:  # told as a problem
        place = ""
    names = {
        "model.name": place if place == config.model.name else None,
        "retrieval.encoder": config.retrieval.encoder,
        "retrieval.reranker": config.retrieval.reranker,
    }
    for setting, name in names.items():
        if name and "/" in name and not Path(name).expanduser().exists():
            yield f"{setting} {name} is a hub id: it must be in the hub's cache, or in reach, when the server starts"
