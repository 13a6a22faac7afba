"""VeriMem: how far a kind of source is believed before anything is checked."""

from __future__ import annotations

from enum import StrEnum

from ewe.longterm.records import MemorySource


class SourceTier(StrEnum):
    """The five tiers of sources (verimem-a.txt, 2.3.1)."""

    KNOWLEDGE_BASE = "knowledge_base"
    CONFIDENT_USER = "confident_user"
    SUPPORTED_INFERENCE = "supported_inference"
    UNCORROBORATED_USER = "uncorroborated_user"
    SPECULATION = "speculation"


TIER_VERACITY = {
    SourceTier.KNOWLEDGE_BASE: 1.0,
    SourceTier.CONFIDENT_USER: 0.8,
    SourceTier.SUPPORTED_INFERENCE: 0.6,
    SourceTier.UNCORROBORATED_USER: 0.4,
    SourceTier.SPECULATION: 0.2,
}
"""v_source (verimem-a.txt, 2.3.1)."""

WRITE_TIME_PRIOR = {"tool": 0.9, "user": 0.7, "model": 0.5}
"""v_0 of trusted tools and databases, of what users say, and of what the agent infers (verimem-b.txt, write time)."""

_TRUSTED = frozenset({"tool", "document", "knowledge_base", "database", "passage"})
_USERS = frozenset({"user", "person"})


def source_tier(kind: str, *, corroborated: bool = False) -> SourceTier:
    """The tier of a kind of source (verimem-a.txt, 2.3.1).

    kind: of a `MemorySource`: tools, documents and databases are knowledge bases; every kind that is not known counts
    as the agent's own. corroborated: whether the user was sure of it, or evidence stands behind the inference.
    """
    if kind in _TRUSTED:
        return SourceTier.KNOWLEDGE_BASE
    if kind in _USERS:
        return SourceTier.CONFIDENT_USER if corroborated else SourceTier.UNCORROBORATED_USER
    return SourceTier.SUPPORTED_INFERENCE if corroborated else SourceTier.SPECULATION


def tier_veracity(source: MemorySource, *, corroborated: bool = False) -> float:
    """v_source by the source's tier, in [0, 1] (verimem-a.txt, 2.3.1)."""
    return TIER_VERACITY[source_tier(source.kind, corroborated=corroborated)]


def write_time_prior(source: MemorySource) -> float:
    """v_0 by the simple rule: 0.9 for tools, 0.7 for users, 0.5 for the rest (verimem-b.txt, write time)."""
    if source.kind in _TRUSTED:
        return WRITE_TIME_PRIOR["tool"]
    return WRITE_TIME_PRIOR["user" if source.kind in _USERS else "model"]
