"""The 3-step probe of MMA-Bench: what its replies say, and what they are worth (mma.txt, 3.3)."""

import re
from collections.abc import Mapping

import numpy as np

from ewe.eval.memory.mma_cases import FALSE, TRUE, TRUTHS, UNKNOWN, VERDICTS

BETA, GAMMA = 0.5, 1.0
"""beta and gamma of eq. 6; the paper prints no values."""
STEPS = (
    "Answer with one word: TRUE, FALSE, or UNKNOWN if the evidence does not settle it.",
    "You said {verdict}. Divide 100 points between TRUE, FALSE and UNKNOWN by how sure you are of each. Answer in this "
    "form: TRUE=number FALSE=number UNKNOWN=number",
    "You said {verdict}. Look for a mistake in that. Then answer with one word: TRUE, FALSE or UNKNOWN.",
)
"""How the same question is asked: for a verdict, for wagers, for a confession."""
TEXT_SIGNALS = {"A": FALSE, "B": FALSE, "C": FALSE, "D": TRUE}
"""S_text: what words alone say of the claim, by logic type; in D nobody but the unreliable user says anything."""
IMAGE_SIGNALS = {"A": FALSE, "B": TRUE, "C": UNKNOWN, "D": UNKNOWN}
"""S_vis: what the picture says of it (mma.txt, under eq. 6)."""

_WORD = re.compile(r"\b(TRUE|FALSE|UNKNOWN)\b", re.IGNORECASE)
_WAGER = re.compile(r"\b(TRUE|FALSE|UNKNOWN)\b\W{0,3}(\d+(?:\.\d+)?)", re.IGNORECASE)


def read_verdict(reply: str) -> str:
    """The first verdict that a reply names; empty, and so wrong, where it names none."""
    found = _WORD.search(reply)
    return found.group(1).upper() if found else ""


def read_wagers(reply: str) -> dict[str, float]:
    """Points in [0, 100] per verdict, scaled to sum to 100; all 0 where a reply holds none."""
    points = dict.fromkeys(VERDICTS, 0.0)
    for name, number in _WAGER.findall(reply):
        points[name.upper()] = float(number)
    total = sum(points.values())
    return {name: 100.0 * value / total if total else 0.0 for name, value in points.items()}


def core_score(verdict: str, points: Mapping[str, float], logic: str) -> float:
    """CoRe as printed (eq. 6), in [0, 1] for types A and B, in [-1, 1] for C and D.

    beta [y = y*] + (1 - beta) w_winner / 100 for A and B, w_reserve / 100 - gamma [y != UNKNOWN] for C and D. The
    winner is the right side, the reserve what is put on UNKNOWN.
    """
    if logic in "AB":
        return BETA * (verdict == TRUTHS[logic]) + (1.0 - BETA) * points[TRUTHS[logic]] / 100.0
    return points[UNKNOWN] / 100.0 - GAMMA * (verdict != UNKNOWN)


def graded_core_score(verdict: str, logic: str) -> float:
    """CoRe as the authors' public code has it: 1 if right, -0.2 for UNKNOWN where there is an answer, else -1."""
    if verdict == TRUTHS[logic]:
        return 1.0
    return -0.2 if verdict == UNKNOWN else -1.0


def alignment(verdict: str, logic: str) -> str:
    """MSA (eq. 7): "text", "vision" or "confusion"; only types B to D, whose signals differ, tell anything."""
    if verdict == TEXT_SIGNALS[logic]:
        return "text"
    return "vision" if verdict == IMAGE_SIGNALS[logic] else "confusion"


def entropy(points: Mapping[str, float]) -> float:
    """H of wagers in nats, in [0, ln 3]; ln 3, nothing known, where there are none."""
    shares = np.array([value for value in points.values() if value > 0]) / 100.0
    return float(-(shares * np.log(shares)).sum()) if len(shares) else float(np.log(3.0))


def relative_uncertainty(text: float, vision: float) -> float:
    """Delta H_rel = 2 (H_text - H_vis) / (H_text + H_vis), in [-2, 2]; above 0 pictures are surer; 0 for 0 / 0."""
    return 2.0 * (text - vision) / (text + vision) if text + vision > 0 else 0.0


def correction_rates(first: str, last: str, truth: str) -> dict[str, list[float]]:
    """What a case counts for SCR (eq. 8, among the wrong at first) and FCR (eq. 9, among the right): one of both."""
    if first == truth:
        return {"fcr": [float(last != truth)]}
    return {"scr": [float(last == truth)]}
