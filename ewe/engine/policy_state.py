"""What the policy of a sequence is doing: its generator, and all that is under way for it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from ewe.engine.evidence.workers import Job
    from ewe.engine.policy_runtime.side_runner import SideWork
    from ewe.engine.policy_runtime.wordings import Drawing, Wording
    from ewe.engine.sequence import Sequence
    from ewe.engine.units.working_memory import MemoryUnit


@dataclass(slots=True, eq=False)
class Check:
    """A verification under way: which sentences, and what to return to if one is refuted.

    waits: whether nothing is written meanwhile. retrieved: the progress of retrieval; snapshot: the memory when the
    pause was over, if the text went on (else it cannot have changed). is_over: whether its last sentence is told of.
    """

    job: Job
    sentences: tuple[int, ...]
    waits: bool
    retrieved: int
    snapshot: tuple[MemoryUnit, ...] | None = None
    is_over: bool = False


@dataclass(slots=True, eq=False)
class PolicyState:
    """What one sequence's policy is doing.

    steps: its generator, None once it has ended; every: when its text is to pause; queued_effects: what it has yielded
    since. retrieval: the one under way; checks: those under way, oldest first. paused_at, checks_awaited_since: seconds
    of time.monotonic. drawing: wordings that are asked for, or on their way; judging: the check of `judged`, when they
    are there. side: what the policy waits for beside the text; num_side_texts: how many texts it has asked for;
    last_answer: the last of them that was an answer of its own; check_latency_s: of the last check of given texts.
    is_composed: whether the text is not drawn from the request's prompt, but made of such texts.
    """

    steps: Generator[Any, Any, Any] | None = None
    every: tuple[int, ...] = ()
    queued_effects: list[Any] = field(default_factory=list)
    retrieval: Job | None = None
    checks: deque[Check] = field(default_factory=deque)
    paused_at: float | None = None
    checks_awaited_since: float | None = None
    drawing: Drawing | None = None
    judging: Job | None = None
    judged: tuple[Wording, ...] = ()
    side: SideWork | None = None
    num_side_texts: int = 0
    last_answer: Sequence | None = None
    check_latency_s: float = 0.0
    is_composed: bool = False
