"""Plain decoding, under `documents` if there are any."""

from ewe.config import FeedbackConfig
from ewe.engine.effects import Steps, Write, policy
from ewe.engine.policy_answer import Answer


@policy()
def plain(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Writes to the end."""
    yield Write()
