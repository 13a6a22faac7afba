"""The policy that the settings name."""

from ewe.config import Config
from ewe.config.registry import POLICIES
from ewe.engine.effects import Policy
from ewe.errors import ConfigError
from ewe.policies.plain import plain


def named_policy(config: Config) -> Policy:
    """The policy of the settings as it is registered; raises ConfigError for what is none."""
    policy = POLICIES.get(config.policy)
    if not isinstance(policy, Policy):
        raise ConfigError(f"policy {config.policy!r} must be a generator function under @ewe.engine.effects.policy()")
    return policy


def usable_policy(config: Config, can_retrieve: bool, can_verify: bool) -> Policy:
    """What steers sequences: plain decoding without the components that the policy needs.

    One that verifies needs at least one of those that it makes use of; one that neither needs a retriever nor verifies
    runs in any case.
    """
    policy = named_policy(config)
    if policy.asks:
        return policy
    if policy.needs_retriever:
        return policy if can_retrieve else plain
    can_do_some = can_verify or (can_retrieve and policy.retrieves)
    return policy if can_do_some or not policy.verifies else plain
