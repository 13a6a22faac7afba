"""VeriMem: how much veracity a query asks for, and what to do with memories that have less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ewe.longterm.scoring.checks import check_settings, check_shares, clipped

CriticalityEstimator = Callable[[str], float]
"""A query to how much depends on a right answer, in [0, 1]."""


class Action(StrEnum):
    """What becomes of a memory for one query: used as it is, or one of the four ways below the threshold."""

    USE = "use"
    REVALIDATE = "revalidate"
    EXTERNAL_LOOKUP = "external_lookup"
    USE_WITH_UNCERTAINTY = "use_with_uncertainty"
    DISREGARD = "disregard"


@dataclass(frozen=True, slots=True)
class VeracityThreshold:
    """theta(q) = theta_base + phi criticality(q), cut to [0, 1] (verimem-a.txt, 2.4; T_v of verimem-b.txt).

    base: typically 0.5 in the paper; scale: phi, for which it gives no value: with 0.2 no question asks for more than
    a user's plain word, 0.7 (`WRITE_TIME_PRIOR`). disregard_below: the veracity under which a memory is not even used
    with a warning.
    """

    base: float = 0.5
    scale: float = 0.2
    disregard_below: float = 0.2

    def __post_init__(self) -> None:
        check_settings(base=self.base, scale=self.scale, disregard_below=self.disregard_below)

    def of(self, criticality: float) -> float:
        """theta of a query of that criticality, both in [0, 1]."""
        check_shares(criticality=criticality)
        return clipped(self.base + self.scale * criticality)

    def action(
        self, veracity: float, threshold: float, *, can_revalidate: bool = False, can_look_up: bool = False
    ) -> Action:
        """What to do with a relevant memory (verimem-a.txt, 2.4; verimem-b.txt, veracity-aware retrieval).

        threshold: theta(q); both in [0, 1]. At or over it: use. Below: validate it again if that is possible and was
        not done, else look the matter up, else use it with a warning, or disregard it where it is most likely false.
        After an action was tried, ask again with that way closed.
        """
        check_shares(veracity=veracity, threshold=threshold)
        if veracity >= threshold:
            return Action.USE
        if can_revalidate:
            return Action.REVALIDATE
        if can_look_up:
            return Action.EXTERNAL_LOOKUP
        return Action.DISREGARD if veracity < self.disregard_below else Action.USE_WITH_UNCERTAINTY
