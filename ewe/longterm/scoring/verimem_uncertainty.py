"""VeriMem: how little is known about a memory, and whether that asks for more evidence."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.scoring.checks import check_shares, clipped

TAU = 0.6
"""The uncertainty above which evidence is sought; the papers give no value."""


class MemoryUse(StrEnum):
    """What is done with a memory that was recalled (verimem-a.txt, 2.5)."""

    SEEK_EVIDENCE = "seek_evidence"
    USE = "use"


def veracity_uncertainty(veracity: float) -> float:
    """u = 1 - |2 v - 1|, in [0, 1]: 1 at v = 1/2, 0 at 0 and 1 (verimem-b.txt, uncertainty)."""
    check_shares(veracity=veracity)
    return 1.0 - abs(2.0 * veracity - 1.0)


def evidence_conflict(judgements: NDArray[np.floating]) -> float:
    """How far the checks speak against each other, in [0, 1]: the lesser of the greatest E and the greatest C.

    verimem-b.txt only says that conflicting information counts. One piece that surely supports and one that surely
    refutes give 1 however many others agree with either; pieces that all lean one way give little.
    """
    rows = np.asarray(judgements, dtype=np.float64).reshape(-1, 3)
    return clipped(float(min(rows[:, 0].max(), rows[:, 1].max()))) if len(rows) else 0.0


def recall_uncertainty(
    veracity: float, consistency: float = 1.0, self_evaluation: float = 1.0, conflict: float = 0.0
) -> float:
    """U(m, q, context) = 1 - (1 - u(v)) consistency self-eval (1 - conflict), in [0, 1] (verimem-a.txt, 2.5).

    veracity: v_m; consistency: of the memory with the context; self_evaluation: the model's confidence in it for the
    query; conflict: of evidence found on the way; all in [0, 1]. The paper leaves f_uncertain open. In this form each
    doubt alone is enough, doubts add up, and more of any trust never makes it greater; u is `veracity_uncertainty`.
    """
    check_shares(consistency=consistency, self_evaluation=self_evaluation, conflict=conflict)
    return clipped(1.0 - (1.0 - veracity_uncertainty(veracity)) * consistency * self_evaluation * (1.0 - conflict))


def action_on_uncertainty(uncertainty: float, tau: float = TAU) -> MemoryUse:
    """SeekEvidence(m) if U > tau, else UseMemory(m) (verimem-a.txt, 2.5; T_u of verimem-b.txt)."""
    check_shares(uncertainty=uncertainty, tau=tau)
    return MemoryUse.SEEK_EVIDENCE if uncertainty > tau else MemoryUse.USE
