"""What an agent did: its steps, the memories it was shown, and why it stopped."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from ewe.longterm.records import Memory
from ewe.longterm.scoring.threshold import Action
from ewe.types import Passage

_LABEL = re.compile(r"\bM[1-9]\d*\b")


class Stopped(StrEnum):
    """Why a run ended."""

    ANSWERED = "answered"
    STEP_LIMIT = "step_limit"
    MALFORMED = "malformed"
    MODEL_FAILED = "model_failed"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model asked for, with its arguments as it gave them."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run.

    thought: on one line; call: the tool that was called, or answer: what the model ended with; neither where the model
    wrote no step. observation: one line of JSON that the model was shown; empty where nothing was called. replies: all
    that the model wrote for this step, word for word; problems: what was wrong with those that were no step.
    """

    number: int
    thought: str = ""
    call: Call | None = None
    answer: str | None = None
    observation: str = ""
    replies: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryUsed:
    """A memory that the model was shown, under its label there ("M1").

    veracity: how far it was believed for the query; uncertainty: of that; both in [0, 1]. action: what was done with
    it; status: the same in the words the model read. cited: whether the answer names its label.
    """

    label: str
    memory: Memory
    veracity: float
    uncertainty: float
    action: Action
    status: str
    cited: bool = False

    @property
    def flagged(self) -> bool:
        """Whether it fell below the veracity that was asked for."""
        return self.action in (Action.USE_WITH_UNCERTAINTY, Action.DISREGARD)


def cited(shown: Iterable[MemoryUsed], answer: str) -> tuple[MemoryUsed, ...]:
    """The memories shown, each with whether the answer names its label."""
    named = set(_LABEL.findall(answer))
    return tuple(replace(one, cited=one.label in named) for one in shown)


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The outcome of a run.

    answer: None unless the model gave one. memories: those it was shown, in order, as they were last; passages: what
    was looked up, by label ("E1"). error: what went wrong where the model wrote no step or could not be asked.
    """

    question: str
    answer: str | None
    stopped: Stopped
    steps: tuple[Step, ...]
    memories: tuple[MemoryUsed, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    error: str = ""

    def transcript(self) -> str:
        """The whole run as text for people: what was thought, called and observed, and how it ended."""
        lines = [f"Question: {self.question}"]
        for step in self.steps:
            lines += [f"\nStep {step.number}", *(f"(no step: {problem})" for problem in step.problems)]
            lines += [f"Thought: {step.thought}"] if step.thought else []
            lines += [f"Action: {step.call.tool} {dict(step.call.arguments)}"] if step.call else []
            lines += [f"Observation: {step.observation}"] if step.observation else []
            lines += [f"Answer: {step.answer}"] if step.answer is not None else []
        return "\n".join([*lines, f"\nStopped: {self.stopped.value}" + (f", {self.error}" if self.error else "")])
