"""Plain decoding, under `documents` if there are any."""

from ewe.config import FeedbackConfig
from ewe.engine.effects import Answer, Steps, Write, policy


@policy()
def plain(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Writes to the end."""
    yield Write()
