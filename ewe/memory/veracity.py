"""How far a source can be believed, as the weight of its memory unit."""

from __future__ import annotations

from typing import Literal

VeracityMode = Literal["off", "linear", "power"]


def unit_weight(veracity: float, mode: VeracityMode, power: float) -> float | None:
    """The weight w > 0 of a unit whose source has this veracity in [0, 1], or None: keep it out (design 2.5).

    off: w = 1; linear: w = veracity; power: w = veracity ** power. Veracity 0, or a power of it too small for a float,
    keeps the unit out. Raises ValueError for a veracity outside [0, 1].
    """
    if not 0.0 <= veracity <= 1.0:
        raise ValueError(f"veracity must lie in [0, 1], got {veracity}")
    if veracity == 0.0:
        return None
    if mode == "off":
        return 1.0
    weight = veracity if mode == "linear" else veracity**power
    return weight or None
