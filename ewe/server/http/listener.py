"""The socket that a server or router listens on."""

import os
import socket

from ewe.errors import ConfigError
from ewe.server.settings import ServerSettings

LISTEN_FD = "EWE_LISTEN_FD"  # a variable: the number of a socket that listens already, from the process before this one


def listen(settings: ServerSettings) -> socket.socket:
    """The server's socket, or the one that it was started with; raises ConfigError for a port that cannot be had."""
    given = os.environ.pop(LISTEN_FD, None)
    if given is not None:
        listener = socket.socket(fileno=int(given))
        listener.set_inheritable(False)  # a child that outlives this process must not hold the port
        return listener
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}"
        ) from error
