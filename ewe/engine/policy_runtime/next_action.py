"""What a sequence's state asks for: the one step that its row is up to."""

from typing import Literal

from ewe.engine.sequence import Sequence

# What to do with a sequence now. Names and no Enum, whose members Python 3.11 takes five times as long to find: every
# sequence has its action looked at in every step.
Action = Literal[
    "run",
    "wait",
    "encode",
    "add_retrieved",
    "apply_verdicts",
    "take_replies",
    "draw",
    "take_drawn",
    "take_judged",
    "complete",
]


def next_action(sequence: Sequence) -> Action:
    """The step that a sequence's state asks for; a check that nobody waits for holds up nothing but the text's end.

    A verdict on a text whose memory is recorded comes first: it may make a later retrieval pointless.
    """
    state = sequence.policy
    head = state.checks[0] if state.checks else None
    if sequence.finish == "error":
        return "complete"
    if state.side is not None:
        return "take_replies" if state.side.is_done else "wait"
    if head is not None and head.snapshot is not None and head.job.done:
        return "apply_verdicts"
    if state.retrieval is not None:
        return "add_retrieved" if state.retrieval.done else "wait"
    if sequence.schedule.pending_units:
        return "encode"
    if state.judging is not None:
        return "take_judged" if state.judging.done else "wait"
    if state.drawing is not None:
        if not state.drawing.sides:
            return "draw"
        return "take_drawn" if state.drawing.is_done else "wait"
    if head is not None:
        if head.job.done:
            return "apply_verdicts"
        if sequence.finish is not None or any(check.waits for check in state.checks):
            return "wait"
    return "run" if sequence.finish is None else "complete"
