"""Processes that torchrun has started, on one machine or on several: how they find and reach rank 0."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import psutil
from torch import distributed
from torch.distributed.rendezvous import rendezvous

from ewe.config import ModelConfig
from ewe.engine.distributed.link import SILENT_S, TO_COME_S, Link
from ewe.errors import ConfigError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_TO_GREET_S = 5.0
_HELLO = struct.Struct(">32sI")  # what only readers of the store know, the rank
_ADDRESS, _MODELS = "ewe-address", "ewe-models"


def is_started_by_torchrun() -> bool:
    """Whether torchrun has started this process and others beside it."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def follow_rank_0(config: ModelConfig) -> None:
    """Ends every process of torchrun's but rank 0, when rank 0 has no more use for it; returns in rank 0.

    config: this machine's own, whose model.name is read here. Raises ConfigError if torchrun has started too many or
    too few.
    """
    world = int(os.environ["WORLD_SIZE"])
    if world != config.tensor_parallel:
        raise ConfigError(
            f"torchrun has started {world} processes (--nnodes times --nproc-per-node), and model.tensor_parallel is "
            f"{config.tensor_parallel}: they must be the same"
        )
    if os.environ["RANK"] == "0":
        return
    from ewe.engine.distributed.worker import serve

    with _failing_clearly():
        store, rank, parts = _rendezvous()
        connection = _reach_rank_0(store, rank)
    serve(connection, store, rank, parts, config.name)


def meet_workers() -> tuple[Store, list[Link]]:
    """Rank 0's side: where the group meets, and links to the others. Raises ConfigError if some do not come."""
    with _failing_clearly():
        store, _, parts = _rendezvous()
        if store.add(_MODELS, 1) > 1:
            raise ConfigError("torchrun's processes have ended with their first model: start torchrun again")
        with _listener() as listener:
            token = secrets.token_bytes(32)
            store.set(_ADDRESS, token.hex() + str(listener.getsockname()[1]))
            links: dict[int, Link] = {}
            while len(links) < parts - 1:
                links |= _greeted(listener.accept()[0], token)
    return store, [links[rank] for rank in sorted(links)]


def _greeted(connection: socket.socket, token: bytes) -> dict[int, Link]:
    """The worker that has called, by its rank; empty for anybody else."""
    connection.settimeout(_TO_GREET_S)
    try:
        received, rank = _HELLO.unpack(connection.recv(_HELLO.size, socket.MSG_WAITALL))
    except (OSError, struct.error):
        received, rank = b"", 0
    if hmac.compare_digest(received, token):
        return {rank: Link(rank, _tuned(connection))}
    connection.close()
    return {}


def _rendezvous() -> tuple[Store, int, int]:
    """torchrun's own store, this process's rank, and the number of ranks."""
    store, rank, parts = next(rendezvous("env://", timeout=timedelta(seconds=TO_COME_S)))
    return store, rank, parts


def _reach_rank_0(store: Store, rank: int) -> socket.socket:
    address = store.get(_ADDRESS).decode()  # waits until rank 0 has set it
    token, port = bytes.fromhex(address[:64]), int(address[64:])
    connection = socket.create_connection((os.environ["MASTER_ADDR"], port), TO_COME_S)
    connection.sendall(_HELLO.pack(token, rank))
    return _tuned(connection)


def _listener() -> socket.socket:
    """On a port that is free, at every address: which of them the others see is not known here."""
    if socket.has_dualstack_ipv6():
        listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        listener = socket.create_server(("", 0))
    listener.settimeout(TO_COME_S)
    return listener


def _tuned(connection: socket.socket) -> socket.socket:
    """Sends at once, and fails when the other machine has been silent for `SILENT_S`.

    gloo takes the interface that a machine's name belongs to, often one that others cannot reach: it is told this one.
    """
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * SILENT_S))
    own = connection.getsockname()[0].removeprefix("::ffff:")
    for name, addresses in psutil.net_if_addrs().items():
        if not ip_address(own).is_loopback and own in {item.address for item in addresses}:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    return connection


@contextmanager
def _failing_clearly() -> Iterator[None]:
    try:
        yield
    except (OSError, distributed.DistError) as error:
        raise ConfigError(
            f"the processes that torchrun started did not find each other: {error} (rank 0 is looked for at "
            f"{os.environ['MASTER_ADDR']}, which all machines must reach, at any port; if it has ended, it says why)"
        ) from error
