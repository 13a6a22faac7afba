"""Whose word about a client's address counts: nobody's, but of the proxies that the settings name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the server's packages are not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.errors import ConfigError
from ewe.server.http.draining import DrainingServer
from ewe.server.settings import ServerSettings
from ewe.server.traffic.fair_queue import tenant_of


class Server(DrainingServer):
    def refuse_new(self) -> bool:
        return True

    async def drain(self, signal_name: str) -> None:
        pass


def tenant(settings: ServerSettings, sender: str, *told: str) -> str:
    """Who a request counts for that comes from `sender` and tells these addresses."""
    found = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(tenant_of(scope))

    config = Server(app, settings).config
    config.load()
    headers = [(b"x-forwarded-for", address.encode()) for address in told]
    scope = {"type": "http", "client": (sender, 1), "headers": headers, "scheme": "http"}
    asyncio.run(config.loaded_app(scope, None, None))  # type: ignore[arg-type]
    return str(found[0])


@pytest.mark.parametrize("sender", ["127.0.0.1", "10.0.0.1", "::1"])
def test_nobody_says_who_he_is(sender: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert tenant(ServerSettings(), sender, "9.9.9.9") == sender


def test_a_trusted_proxy_says_who_asks() -> None:
    settings = ServerSettings.from_mapping({"trusted_proxies": ["127.0.0.1", "10.0.0.0/8"]})
    assert tenant(settings, "127.0.0.1", "9.9.9.9") == "9.9.9.9"
    assert tenant(settings, "10.1.2.3", "8.8.8.8, 9.9.9.9", "10.0.0.7") == "9.9.9.9", (
        "the last one that none may choose"
    )
    assert tenant(settings, "11.0.0.1", "9.9.9.9") == "11.0.0.1"
    assert tenant(settings, "127.0.0.1") == "127.0.0.1"


@pytest.mark.parametrize("wrong", ["nginx", "*", "10.0.0.0/99", ""])
def test_a_proxy_is_an_address_or_a_network(wrong: str) -> None:
    with pytest.raises(ConfigError, match="trusted_proxies"):
        ServerSettings.from_mapping({"trusted_proxies": [wrong]})
