"""The server as a deployment of Ray Serve, whose replicas come and go with the load.

    serve run ewe.server.router.ray_serve:build_app model=builtin

A client that sends `x-session-id` (a user, a document, a conversation) stays with one replica, whose memory units it
finds encoded: that header is the first part of the router's key, too. Ray does not look into bodies.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ewe.config import is_postgres
from ewe.config.config_files import explain
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError, EngineDeadError
from ewe.server.settings import resolve_settings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from ray.serve import Application

    from ewe.config import Config
    from ewe.server.settings import ServerSettings

_ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"


class RayArguments(BaseModel):
    """Arguments of the application: model, config (a file) and settings as `ewe serve` takes them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    config: Path | None = None
    settings: tuple[str, ...] = ()


def build_app(args: dict[str, Any]) -> Application:
    """The application that Ray's configuration names; its deployment `ewe` can be changed there in every option.

    Raises ConfigError for settings that are wrong, and where Ray is missing.
    """
    try:
        from ray import serve
    except ModuleNotFoundError as error:
        raise ConfigError("Ray Serve is not installed: pip install 'ewe-engine[ray]'") from error
    try:
        given = RayArguments.model_validate(args)
    except ValidationError as error:
        raise ConfigError(*(f"args: {explain(item, RayArguments)}" for item in error.errors())) from error
    config, server, _ = resolve_settings(given.model, given.config, os.environ, given.settings)
    if server.batch_folder is not None or not (config.longterm.path is None or is_postgres(config.longterm.path)):
        raise ConfigError("folders of memories and batches have one writer each: leave them out with Ray Serve")
    preflight(config)
    places = config.scheduler.places
    deployment = serve.deployment(
        name="ewe",
        max_ongoing_requests=places + server.max_waiting,
        autoscaling_config={"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": places},
        health_check_period_s=10,
        health_check_timeout_s=30,
        graceful_shutdown_timeout_s=server.drain,
        request_router_config={"request_router_class": _ROUTER},
    )
    return deployment(serve.ingress()(EweReplica)).bind(config, server)


class EweReplica:
    """One engine and its app, in a process of Ray's."""

    def __init__(self, config: Config, server: ServerSettings) -> None:
        from ewe.llm import LLM

        self._llm = LLM(config=config)
        self._llm.client.components.warm()
        self._settings = server

    def __serve_build_asgi_app__(self) -> FastAPI:
        """What Ray asks for when the engine is loaded."""
        from ewe.server.app import create_app

        return create_app(self._llm, self._settings)

    def check_health(self) -> None:
        """Raises EngineDeadError if the engine has stopped; Ray then starts another replica."""
        if not self._llm.client.is_alive:
            raise EngineDeadError("the engine has stopped")
