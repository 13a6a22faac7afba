"""MARK: trust and persistence scores, and which memories are kept.

Numbers in, numbers out.
"""

from __future__ import annotations

from dataclasses import dataclass

from ewe.errors import ConfigError
from ewe.longterm.scoring.checks import check_counts, check_settings, check_shares


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The parameters of trust and persistence, those of the example in mark.txt, appendix 1.

    history: alpha of the trust score, in [0, 1]; validated_weight and total_weight: the smoothing weights w_v and w_s,
    0 < w_v <= w_s; incorrect_penalty: lambda of the persistence score, 0.5 to 1; persistence_scale: the alpha of its
    threshold, in (0, 1].
    """

    history: float = 0.8
    validated_weight: float = 1.0
    total_weight: float = 4.0
    incorrect_penalty: float = 0.5
    persistence_scale: float = 0.85

    def __post_init__(self) -> None:
        check_settings(history=self.history, persistence_scale=self.persistence_scale)
        if not 0.0 < self.validated_weight <= self.total_weight:
            raise ConfigError("validated_weight must be above 0 and no greater than total_weight")
        if not 0.5 <= self.incorrect_penalty <= 1.0:
            raise ConfigError(f"incorrect_penalty must lie in [0.5, 1], got {self.incorrect_penalty!r}")

    @property
    def initial_trust(self) -> float:
        """TS_init = w_v / w_s, in (0, 1]."""
        return self.validated_weight / self.total_weight

    def trust(self, previous: float, correct: int, total: int) -> float:
        """TS_t = alpha TS_{t-1} + (1 - alpha) (C_correct + w_v) / (C_total + w_s), in [0, 1].

        previous: TS_{t-1} in [0, 1]; correct: validations as correct; total: recalls, at least `correct`.
        """
        check_shares(previous=previous)
        check_counts(correct=correct, total=total)
        observed = (min(correct, total) + self.validated_weight) / (total + self.total_weight)
        return self.history * previous + (1.0 - self.history) * observed

    def settled_trust(self, correct: int, total: int) -> float:
        """(C_correct + w_v) / (C_total + w_s), in [0, 1]: where `trust` comes to rest if these counts stay.

        It needs no earlier score, so it can be worked out from a record alone; at 0 and 0 it is TS_init.
        """
        check_counts(correct=correct, total=total)
        return (min(correct, total) + self.validated_weight) / (total + self.total_weight)

    def persistence(self, total: int, incorrect: int) -> float:
        """PS = C_total / (C_total + lambda C_incorrect), in [0, 1]; 1 where nothing was recalled or refused yet."""
        check_counts(total=total, incorrect=incorrect)
        below = total + self.incorrect_penalty * incorrect
        return total / below if below > 0 else 1.0

    def persistence_threshold(self, trust: float) -> float:
        """alpha (1 - TS), in [0, 1], which the persistence score must exceed."""
        check_shares(trust=trust)
        return self.persistence_scale * (1.0 - trust)

    def retains(self, trust: float, persistence: float) -> bool:
        """Whether TS > TS_init, or else PS > alpha (1 - TS).

        The paper has a rule for TS above TS_init and one for TS below; a memory that stands exactly at TS_init (a new
        one) is held to the second.
        """
        check_shares(persistence=persistence)
        return trust > self.initial_trust or persistence > self.persistence_threshold(trust)


EXAMPLE_POLICY = RetentionPolicy()
"""The policy of table 7."""
