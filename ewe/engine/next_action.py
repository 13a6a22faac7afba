"""What a sequence's state asks for: the one step that its row is up to."""

from enum import Enum, auto

from ewe.engine.sequence import Sequence
from ewe.engine.wordings import Drawing


class Action(Enum):
    """What to do with a sequence now."""

    RUN = auto()
    WAIT = auto()
    ENCODE = auto()
    ADD_RETRIEVED = auto()
    APPLY_VERDICTS = auto()
    TAKE_REPLIES = auto()
    DRAW = auto()
    TAKE_DRAWN = auto()
    TAKE_JUDGED = auto()
    COMPLETE = auto()


def next_action(sequence: Sequence) -> Action:
    """The step that a sequence's state asks for; a check that nobody waits for holds up nothing but the text's end.

    A verdict on a text whose memory is recorded comes first: it may make a later retrieval pointless.
    """
    state = sequence.policy
    head = state.checks[0] if state.checks else None
    if sequence.finish == "error":
        return Action.COMPLETE
    if state.side is not None:
        return Action.TAKE_REPLIES if state.side.is_done else Action.WAIT
    if head is not None and head.snapshot is not None and head.job.done:
        return Action.APPLY_VERDICTS
    if state.retrieval is not None:
        return Action.ADD_RETRIEVED if state.retrieval.done else Action.WAIT
    if sequence.schedule.pending_units:
        return Action.ENCODE
    if state.judging is not None:
        return Action.TAKE_JUDGED if state.judging.done else Action.WAIT
    if state.drawing is not None:
        return _drawing_action(state.drawing)
    if head is not None:
        if head.job.done:
            return Action.APPLY_VERDICTS
        if sequence.finish is not None or any(check.waits for check in state.checks):
            return Action.WAIT
    return Action.RUN if sequence.finish is None else Action.COMPLETE


def _drawing_action(drawing: Drawing) -> Action:
    if not drawing.sides:
        return Action.DRAW
    return Action.TAKE_DRAWN if drawing.is_done else Action.WAIT
