"""A policy that asks, run by hand: scripted answers go in, what was asked comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ewe.config import PipelineConfig
from ewe.engine.effects import Policy
from ewe.engine.side_texts import Add, Ask, Decide, Generate, HasTokens, Reply, Search, VerifyTexts
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationRequest, VerificationResult

Model = Callable[[Ask], Reply]


def passages(query: str, top_k: int) -> tuple[Passage, ...]:
    """What is found for a query: two passages that name it."""
    return tuple(Passage(f"{query}#{place}", f"about {query}, part {place}") for place in range(2))[:top_k]


def judged(*verdicts: Verdict, evidence: Sequence[Evidence] = ()) -> VerificationResult:
    """A result with one claim per verdict."""
    return VerificationResult(tuple(Claim(f"claim {n}", verdict=v) for n, v in enumerate(verdicts)), tuple(evidence))


@dataclass
class Log:
    """What a policy did. end: what it returned."""

    asked: list[tuple[str, tuple[Ask, ...]]] = field(default_factory=list)
    queries: list[tuple[tuple[str, ...], int]] = field(default_factory=list)
    checked: list[tuple[VerificationRequest, ...]] = field(default_factory=list)
    written: list[Add] = field(default_factory=list)
    decided: list[Decide] = field(default_factory=list)
    end: Any = None

    @property
    def prompts(self) -> list[str | None]:
        """All texts that the model was given, in order."""
        return [ask.text for ask in self.asks]

    @property
    def asks(self) -> list[Ask]:
        """All that was asked, in order."""
        return [ask for _, asks in self.asked for ask in asks]


def drive(
    policy: Policy,
    settings: PipelineConfig,
    question: str,
    model: Model,
    verify: Callable[[VerificationRequest], VerificationResult] | None = None,
    search: Callable[[str, int], tuple[Passage, ...]] = passages,
    tokens: Sequence[str] = (),
) -> Log:
    """Runs a policy to its end. tokens: those that the model has by name."""
    log, answer = Log(), None
    steps: Any = policy(SimpleNamespace(question=question), settings)  # type: ignore[arg-type]
    for _ in range(1000):
        try:
            step = steps.send(answer)
        except StopIteration as stop:
            log.end = stop.value
            return log
        answer = None
        if isinstance(step, Generate):
            log.asked.append((step.name, step.asks))
            answer = [model(ask) for ask in step.asks]
        elif isinstance(step, HasTokens):
            answer = set(step.names) <= set(tokens)
        elif isinstance(step, Search):
            log.queries.append((step.queries, step.top_k))
            answer = [search(query, step.top_k) for query in step.queries]
        elif isinstance(step, VerifyTexts):
            log.checked.append(step.requests)
            assert verify is not None
            answer = [verify(request) for request in step.requests]
        else:
            (log.written if isinstance(step, Add) else log.decided).append(step)
    raise AssertionError("the policy does not come to an end")
