"""What users and agents of requests are called in the store of memories."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from ewe.config import LongTermConfig
from ewe.server.schemas.memory_use import MemoryUse
from ewe.types import MemoryOptions


class Owner(NamedTuple):
    """A user, an agent, or a user with one agent; nobody named: what everybody shares."""

    user: str
    agent: str


@dataclass(frozen=True, slots=True)
class Tenants:
    """separate: whether each key has users and agents of its own; the shared memories are all keys' to read then."""

    separate: bool

    def owner(self, key: str, user: str, agent: str) -> Owner:
        """Whose memories a key's caller means, as the store names them; key: its name.

        A separate key whose caller names nobody has memories of its own too, so that none is shared by accident.
        """
        if not self.separate:
            return Owner(user, agent)
        return Owner(f"{key}/{user}" if user or not agent else "", f"{key}/{agent}" if agent else "")

    def names(self, key: str, user: str, agent: str) -> Owner:
        """User and agent of the store as the key's caller knows them."""
        prefix = f"{key}/" if self.separate else ""
        return Owner(user.removeprefix(prefix), agent.removeprefix(prefix))

    def voice(self, key: str, user: str) -> str:
        """What a user is called as the source of a memory: as in `owner`, so that both are erased together."""
        return self.owner(key, user, "").user if user else ""

    def owns(self, key: str, user: str, agent: str) -> bool:
        """Whether a key's caller may list memories of the store: of its own users or agents, or the shared ones."""
        owner = user or agent
        return not self.separate or not owner or owner.startswith(f"{key}/")

    def options(self, key: str, choice: MemoryUse | None, settings: LongTermConfig) -> MemoryOptions | None:
        """Whose memories a request may use; None: those that the settings name. Raises InvalidRequestError."""
        if choice is None and (settings.path is None or not self.separate):
            return None
        choice = choice or MemoryUse(user=settings.user, agent=settings.agent)
        owner = self.owner(key, choice.user, choice.agent)
        return MemoryOptions(owner.user, owner.agent, choice.scope, choice.threshold, choice.remember)


def salt_of(key: str, cache_salt: str | None) -> str:
    """What separates the encoded texts of different keys, and those that a caller wants apart."""
    return hashlib.sha256(f"{key}\0{cache_salt or ''}".encode()).hexdigest() if key or cache_salt else ""
