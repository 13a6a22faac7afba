"""The systems that `ewe eval world` compares, after Table 1 of the EWE paper.

Owns: their names and settings. Knows `ewe.config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

POISONED_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class System:
    """One row of the table: settings on top of the built-in setup, and the share of passages that state a lie."""

    name: str
    settings: tuple[str, ...]
    has_datastore: bool = True
    has_verifier: bool = True
    poisoned: float = 0.0


SYSTEMS = (
    System("no memory", ("policy=plain",), has_datastore=False, has_verifier=False),
    System("RAG", ("policy=rag",), has_verifier=False),
    System("EWE without verification", ("policy=ewe",), has_verifier=False),
    System("EWE", ("policy=ewe",)),
    System("EWE, poisoned", ("policy=ewe",), poisoned=POISONED_SHARE),
    System(
        "EWE, poisoned, veracity weighting",
        ("policy=ewe", "memory.veracity_weighting=power"),
        poisoned=POISONED_SHARE,
    ),
)


@dataclass(frozen=True, slots=True)
class Score:
    """One system on one seed. Shares in [0, 1]; counts are sums over all answers.

    false_share: false facts stated / facts stated. precision, recall, f1: means over answers, recall and F1 at the K
    of the whole table (VeriScore). unparsed_share: sentences that the grader could not read.
    """

    answers: int
    facts_stated: int
    false_facts: int
    false_share: float
    precision: float
    recall: float
    f1: float
    sentences: int
    unparsed_share: float
    rewritten: int
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean over the seeds, and the least and largest of them."""

    mean: float
    least: float
    largest: float


@dataclass(frozen=True, slots=True)
class Report:
    """The whole table: per system one Score per seed; k is the K of recall and F1."""

    k: float
    seeds: tuple[int, ...]
    people_per_seed: int
    scores: Mapping[str, tuple[Score, ...]]

    def spread(self, system: str, column: str) -> Spread:
        """A column of one system over the seeds."""
        values = [float(getattr(score, column)) for score in self.scores[system]]
        return Spread(sum(values) / len(values), min(values), max(values))
