"""Mistakes in policies of plug-ins: each ends its own request, says what is wrong, and leaves the others alone."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from engine_parts import Judge, Library, words
from mock_engine import Bench

from ewe.config import Config, registry
from ewe.engine import effects
from ewe.engine.effects import Draw, Forget, Remember, Restore, Retrieve, Rewind, Steps, Take, Verify, Write, policy
from ewe.engine.evidence.sentence_checks import Attempt, SentenceState
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Ask, Decide, Generate, Search
from ewe.types import Generation, Passage, ScoredPassage, Verdict
from ewe.types.sampling_params import SamplingParams

TEXT = "Aa bb. Cc dd. Ee ff."
HIT = ScoredPassage(Passage("own", "Gg hh."), 1.0)
Wrong: Any = "wrong"
NUMBER: Any = 5


@pytest.fixture
def run() -> Iterator[Callable[..., Generation]]:
    """What such a policy makes of one prompt, beside another prompt that it writes without a mistake."""

    def write(written: Any, **traits: bool) -> Generation:
        def either(answer: Answer, settings: Any) -> Any:
            return written(answer, settings) if answer.question == "q:" else good(answer, settings)

        everything = policy(retrieves=True, verifies=True, rewrites=True, composes=True, **traits)(either)
        registry.POLICIES._registered["own"] = everything
        memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
        settings = Config.from_mapping({"policy": "own", "memory": memory})
        bench = Bench(settings, Library(), Judge(lambda _: Verdict.SUPPORTED), words(TEXT))
        bench.add("a", "q:", SamplingParams(max_tokens=40))
        bench.add("b", "good:", SamplingParams(max_tokens=40))
        results = bench.run()
        assert (results["b", 0].text, results["b", 0].finish_reason) == (TEXT, "stop")
        generation: Generation = results["a", 0]
        return generation

    yield write
    registry.POLICIES._registered.pop("own", None)


def good(answer: Answer, settings: Any) -> Steps:
    """Writes on, and settles at the end."""
    while not answer.is_finished:
        yield Write(every=(1,))
    for sentence in range(len(answer.sentences)):
        answer.settle(sentence, SentenceState(reason="nobody asked"))


def best_of(answer: Answer, settings: Any) -> Steps:
    """Draws each sentence twice and goes on with the better one."""
    while not answer.is_finished:
        yield Draw(len(answer.sentences), 2)
        drawn = yield Write()
        yield effects.Judge(drawn.wordings)
        judged = yield Write()
        chosen = max(range(2), key=lambda place: judged.results[place].score)
        yield Take(len(answer.sentences), judged, chosen)
        if judged.wordings[chosen].text:
            check = yield Write()
            answer.settle(check.sentence, check.state)


def test_each_sentence_can_be_the_best_of_several_drawings(run: Callable[[Any], Generation]) -> None:
    generation = run(best_of)
    assert (generation.text, generation.error) == (TEXT, "")
    assert [event.kind for event in generation.trace].count("wordings") >= 3
    assert {sentence.verdict for sentence in generation.sentences} == {Verdict.SUPPORTED}


def once(make: Callable[[Answer], Any]) -> Any:
    """A policy that yields this after its first sentence."""

    def written(answer: Answer, settings: Any) -> Steps:
        while not answer.sentences:
            yield Write(every=(1,))
        effect = make(answer)
        if effect is not None:
            yield effect
        while True:
            yield Write(every=(1,))

    return written


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda _: Write(every=(0,)), "ValueError: Write: every holds numbers of tokens from 1 on, got (0,)"),
        (lambda _: Write(every=Wrong), "TypeError: Write: every must be tuple[int, ...], got 'wrong'"),
        (lambda _: Retrieve("q", -1), "ValueError: Retrieve: top_k must be at least 1, got -1"),
        (lambda _: Verify((7,)), "ValueError: Verify: there is no sentence 7"),
        (lambda _: Rewind(7, "x"), "ValueError: Rewind: there is no sentence 7"),
        (lambda _: Rewind(0, NUMBER), "TypeError: Rewind: reason must be str, got 5"),
        (lambda _: Remember((HIT,), Wrong), "TypeError: Remember: lane must be Lane, got 'wrong'"),
        (lambda _: Remember((HIT.passage,)), "TypeError: Remember: hits must be"),  # type: ignore[arg-type]
        (lambda _: Restore(0, Attempt("Aa.", (Wrong,), SentenceState()), ""), "TypeError: Attempt: tokens must be"),
        (lambda _: Restore(0, Attempt("Aa.", (), Wrong), ""), "TypeError: Attempt: state must be SentenceState"),
        (lambda _: Draw(1, 2.0), "TypeError: Draw: count must be int, got 2.0"),  # type: ignore[arg-type]
        (lambda _: Generate("x", (Ask("q", sentence=NUMBER),)), "TypeError: Ask: sentence must be str | None"),
        (lambda _: Draw(1, 1000), "ValueError: Draw: count must be 1 to 64, got 1000"),
        (lambda _: Draw(1, 0), "ValueError: Draw: count must be 1 to 64, got 0"),
        (
            lambda _: Decide("x", {"about": "y"}),
            "ValueError: Decide: data has the key 'about', which names the decision",
        ),
        (lambda _: Decide("x", {1: "y"}), "TypeError: Decide: the keys of data must be texts, got 1"),  # type: ignore[dict-item]
        (lambda _: Decide("x", {"a": object()}), "TypeError: Object of type object is not JSON serializable"),
        (lambda answer: answer.settle(0, Wrong), "TypeError: a SentenceState is needed, got 'wrong'"),
        (lambda answer: answer.settle(0, SentenceState(Wrong)), "TypeError: SentenceState: verdict must be Verdict"),
        (lambda answer: answer.settle(7, SentenceState()), "ValueError: there is no sentence 7"),
        (lambda answer: answer.vary(Wrong), "ValueError: there is no sentence 'wrong'"),
        (lambda _: sys.exit(3), "SystemExit: 3"),
    ],
)
def test_what_cannot_be_done_ends_its_request_alone(
    make: Callable[[Answer], Any], error: str, run: Callable[[Any], Generation]
) -> None:
    generation = run(once(make))
    assert generation.finish_reason == "error"
    assert f"policy own failed: {error}" in generation.error


def returns(ending: Any, first: bool) -> Any:
    """A policy that returns this, at once or after a sentence."""

    def written(answer: Answer, settings: Any) -> Any:
        while not (first or answer.sentences):
            yield Write(every=(1,))
        return ending

    return written


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("ending", ["soon", 5, ["stop"]])
def test_what_no_answer_ends_by_is_refused(ending: Any, first: bool, run: Callable[[Any], Generation]) -> None:
    assert f"TypeError: it returned {ending!r}: return an Ask" in run(returns(ending, first)).error


def test_an_answer_that_has_begun_is_not_asked_for_anew(run: Callable[..., Generation]) -> None:
    assert "a part has been written already" in run(returns(Ask("x"), False), asks=True).error
    assert "it returned an Ask with `begin`" in run(returns(Ask("x", begin="Aa"), True), asks=True).error


def nothing(answer: Answer, settings: Any) -> None:
    """Yields nothing."""


def one_argument(answer: Answer) -> Steps:
    """Takes too little."""
    yield Write()


def no_message(answer: Answer, settings: Any) -> Steps:
    """Raises what cannot be told."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no message")

    yield Write(every=(1,))
    raise MuteError


def cancelled(answer: Answer, settings: Any) -> Steps:
    """Raises what is no Exception."""
    yield Write(every=(1,))
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (nothing, "it is no generator function: nothing in it yields, and it returned None"),
        (one_argument, "takes 1 positional argument but 2 were given"),
        (no_message, "MuteError"),
        (cancelled, "CancelledError"),
    ],
)
def test_what_does_not_begin_or_raises_anything_ends_its_request_alone(
    written: Any, error: str, run: Callable[[Any], Generation]
) -> None:
    assert error in run(written).error


@pytest.mark.parametrize("effect", [Forget(), Retrieve("q"), Search((), 1)])
def test_a_policy_that_yields_without_an_end_does_not_hold_up_the_others(
    effect: effects.Effect, run: Callable[[Any], Generation]
) -> None:
    def forever(answer: Answer, settings: Any) -> Steps:
        while True:
            yield effect

    assert "it yielded 10,000 effects without a Write" in run(forever).error


def test_the_log_says_where_a_policy_failed(run: Callable[[Any], Generation], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        run(once(lambda _: Verify((7,))))
    [record] = caplog.records
    assert "policy own failed at its yield in " in record.message
    assert "test_policy_mistakes.py, line " in record.message
    assert record.exc_info
