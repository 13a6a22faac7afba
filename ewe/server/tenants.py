"""What users and agents of requests are called in the store of memories."""

from dataclasses import dataclass

from ewe.config import LongTermConfig
from ewe.longterm.records import Scope
from ewe.server.schemas.memory_schemas import MemoryUse
from ewe.types import MemoryOptions


@dataclass(frozen=True, slots=True)
class Tenants:
    """separate: whether each key has users and agents of its own; the shared memories are all keys' to read then."""

    separate: bool

    def scope(self, key: str, user: str, agent: str) -> Scope:
        """Where the memories lie that a key's caller means; key: its name.

        A separate key whose caller names nobody has memories of its own too, so that none is shared by accident.
        """
        if not self.separate:
            return Scope(user, agent)
        return Scope(f"{key}/{user}" if user or not agent else "", f"{key}/{agent}" if agent else "")

    def names(self, key: str, scope: Scope) -> tuple[str, str]:
        """User and agent as the key's caller knows them."""
        if not self.separate:
            return scope.user, scope.agent
        return scope.user.removeprefix(f"{key}/"), scope.agent.removeprefix(f"{key}/")

    def voice(self, key: str, user: str) -> str:
        """What a user is called as the source of a memory: as in the scope, so that both are erased together."""
        return self.scope(key, user, "").user if user else ""

    def owns(self, key: str, scope: Scope) -> bool:
        """Whether a key's caller may list the memories of a scope: of its own users or agents, or shared."""
        return not self.separate or scope.shared or (scope.user or scope.agent).startswith(f"{key}/")

    def options(self, key: str, choice: MemoryUse | None, settings: LongTermConfig) -> MemoryOptions | None:
        """Whose memories a request may use; None: those that the settings name. Raises InvalidRequestError."""
        if choice is None and (settings.path is None or not self.separate):
            return None
        choice = choice or MemoryUse(user=settings.user, agent=settings.agent)
        scope = self.scope(key, choice.user, choice.agent)
        return MemoryOptions(scope.user, scope.agent, choice.scope, choice.threshold, choice.remember)
