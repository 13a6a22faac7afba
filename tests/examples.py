"""How many examples Hypothesis draws where one is expensive: few in the fast tier, more with the profile "thorough"."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

THOROUGH = "thorough"  # the profile of `make test-slow`


def examples(fast: int, thorough: int = 100, **more: Any) -> settings:
    """Settings with as many examples as the tier takes; more: what else `hypothesis.settings` takes."""
    return settings(max_examples=thorough if settings.get_current_profile_name() == THOROUGH else fast, **more)
