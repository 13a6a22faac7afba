"""VeriMem: how much depends on a query, how much veracity it asks for, and what to do with memories that have less."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ewe.errors import InvalidRequestError
from ewe.text.words import fold

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

    base: typically 0.5 in the paper; scale: phi, for which it gives no value: ours was tuned on tasks of
    `ewe.longterm.evaluation.verimem_bench` with other seeds than the reported one. disregard_below: the veracity under
    which a memory is not even used with a warning.
    """

    base: float = 0.5
    scale: float = 0.1
    disregard_below: float = 0.2

    def of(self, criticality: float) -> float:
        """theta of a query of that criticality, both in [0, 1]."""
        return min(max(self.base + self.scale * criticality, 0.0), 1.0)

    def action(
        self, veracity: float, threshold: float, *, can_revalidate: bool = False, can_look_up: bool = False
    ) -> Action:
        """What to do with a relevant memory (verimem-a.txt, 2.4; verimem-b.txt, veracity-aware retrieval).

        threshold: theta(q). At or over it: use. Below: validate it again if that is possible, else look the matter up,
        else use it with a warning, or disregard it where it is most likely false. Raises InvalidRequestError for a
        threshold outside [0, 1].
        """
        if not 0.0 <= threshold <= 1.0:
            raise InvalidRequestError(f"threshold must lie in [0, 1], got {threshold!r}")
        if veracity >= threshold:
            return Action.USE
        if can_revalidate:
            return Action.REVALIDATE
        if can_look_up:
            return Action.EXTERNAL_LOOKUP
        return Action.DISREGARD if veracity < self.disregard_below else Action.USE_WITH_UNCERTAINTY


# Per group: how much one sign of it says, and stems of English words; a stem may stop inside a word where it ends in -.
_STAKES: tuple[tuple[float, str], ...] = (
    (
        0.6,
        "dose dosage mg milligram- overdos- medicin- medicat- drug- prescri- symptom- diagnos- treatment- surg- "
        "patient- vaccin- allerg- pregnan- insulin antibiotic- poison- toxic- suicid- seizure- bleed- chest-pain "
        "heart-attack stroke emergency doctor hospital therap-",
    ),
    (
        0.5,
        "lawsuit- legal- illegal- law laws court- contract- liab- visa- immigra- custody testament attorney- lawyer- "
        "sued statut- regulation- complian- gdpr",
    ),
    (
        0.5,
        "invest- mortgage- loan- tax taxes taxed pension- insur- stock stocks bankrupt- salary- transfer-money iban "
        "debt- credit-card budget- invoice-",
    ),
    (
        0.5,
        "safe- danger- hazard- voltage- explos- flammab- evacuat- fire-alarm brake- child-seat security- password- "
        "vulnerab- encrypt- firewall- production-database delete-",
    ),
    (0.25, "deadline- official- certif- evidence- statistic- exact- precise- verify verified guarantee- confirm-"),
)
_DECISION = (
    0.35,
    re.compile(r"\b(should (i|we|he|she|they)|can (i|we) (take|eat|give|mix|use)|is it (safe|legal|ok|okay))\b"),
)
_CASUAL = re.compile(
    r"\b(joke|poem|haiku|story|limerick|brainstorm|fun|favou?rite|small talk|roleplay|pretend|hello|hi|thanks)\b"
)
_CASUAL_FACTOR = 0.4


def _pattern(stems: str) -> re.Pattern[str]:
    parts = []
    for stem in stems.split():
        open_end = stem.endswith("-")
        words = re.escape(stem.rstrip("-")).replace(r"\-", r"\s+")
        parts.append(words + (r"\w*" if open_end else ""))
    return re.compile(rf"\b(?:{'|'.join(parts)})\b")


_SIGNS = (*((weight, _pattern(stems)) for weight, stems in _STAKES), _DECISION)


def estimate_criticality(query: str) -> float:
    """criticality(q) in [0, 1] from the words of an English query (verimem-a.txt, 2.4, leaves it open).

    Groups of signs are combined as 1 - prod(1 - w), a second sign of a group with w / 2; words of play scale it down.
    """
    text = fold(query)
    spared = 1.0
    for weight, pattern in _SIGNS:
        count = len({match.group(0) for match in pattern.finditer(text)})
        if count:
            spared *= 1.0 - weight
        if count > 1:
            spared *= 1.0 - weight / 2
    return (1.0 - spared) * (_CASUAL_FACTOR if _CASUAL.search(text) else 1.0)
