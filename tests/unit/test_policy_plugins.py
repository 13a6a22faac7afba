"""Policies of plugins: generators that the engine runs; a fault in one ends its request and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_bench import GatedBench, Reader
from engine_parts import Judge, Library, Notebook, words
from mock_engine import Bench

from ewe.config import Config, FeedbackConfig, PipelineConfig, registry
from ewe.engine.effects import Paused, Remember, Retrieve, Retrieved, Rewind, Steps, Verify, Write, policy
from ewe.engine.policy_answer import Answer
from ewe.engine.side_texts import Ask, Asking, Decide, Generate, VerifyTexts
from ewe.errors import ConfigError
from ewe.types import Generation, Passage, ScoredPassage, Verdict, VerificationRequest
from ewe.types.sampling_params import SamplingParams

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "plugins.md"
TEXT = "Aa bb. Cc dd. Ee ff."
closed: list[str] = []
noted: list[float] = []


@policy(retrieves=True)
def each_sentence(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Retrieves with every sentence."""
    try:
        while True:
            yield Write(every=(1,))
            if len(answer.sentences) > answer.progress.retrieved and not answer.is_finished:
                answer.progress.retrieved = len(answer.sentences)
                yield Retrieve(answer.words(len(answer.sentences) - 1))
                found = yield Write()
                assert isinstance(found, Retrieved)
                yield Remember(found.hits)
    finally:
        closed.append(answer.question)


@policy(retrieves=True)
def faulty(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Fails at the second sentence of some texts."""
    while True:
        yield Write(every=(1,))
        if len(answer.sentences) == 2 and "bad" in answer.question:
            yield Retrieve("before")
            raise KeyError("no such thing")


@policy(retrieves=True)
def at_once(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Fails before anything is written, in the first answer or in others."""
    if answer.is_first == ("first" in answer.question):
        raise ValueError("not today")
    yield Write()


@policy(retrieves=True)
def nonsense(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Yields what is no effect."""
    yield "write"  # type: ignore[misc]


@policy(retrieves=True, verifies=True, rewrites=True)
def without_waiting(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Has the first sentence checked while the text goes on, and is told as the result of a later yield."""
    told: list[Any] = []
    while not told:
        happened = yield Write(every=(1,))
        if isinstance(happened, Paused) and len(answer.sentences) == 1 and answer.progress.verified == 0:
            answer.progress.verified = 1
            yield Verify((0,), wait=False)
        elif not isinstance(happened, Paused):
            told.append(happened)
    answer.reject(0, told[0].state)
    yield Rewind(0, "my reason")
    yield Write()


def doubtful(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Notes the mean entropy of every sentence."""
    while True:
        yield Write(every=(1,))
        noted.extend(answer.mean_entropy(index) for index in range(len(answer.sentences)))


def takes_back(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Writes the first sentence twice, whatever it says."""
    while not answer.sentences:
        yield Write(every=(1,))
    yield Rewind(0, "again")
    yield Write()


def remembers(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Puts a passage of its own into the memory."""
    yield Remember((ScoredPassage(Passage("own", "Gg hh."), 1.0),))
    yield Write()


def retrieves(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Retrieves once."""
    yield Retrieve("bb")
    yield Write()


def checks(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Has the first sentence checked."""
    while not answer.sentences:
        yield Write(every=(1,))
    yield Verify((0,))
    yield Write()


def checks_texts(answer: Answer, settings: PipelineConfig) -> Asking:
    """Has a text of its own checked."""
    yield VerifyTexts((VerificationRequest("q", "", "Aa bb."),))
    return None


def asks(answer: Answer, settings: PipelineConfig) -> Asking:
    """Has another text written."""
    yield Generate("draft", (Ask(),))
    return None


def gives_over(answer: Answer, settings: PipelineConfig) -> Asking:
    """Answers with what is asked for."""
    yield Decide("nothing")
    return Ask()


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    own = {"each": each_sentence, "faulty": faulty, "at-once": at_once, "nonsense": nonsense, "later": without_waiting}
    registry.POLICIES._registered |= {**own, "function": each_sentence.write}
    closed.clear()
    noted.clear()
    yield
    for name in [*own, "function"]:
        del registry.POLICIES._registered[name]


def config(name: str) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"policy": name, "memory": memory})


def test_a_policy_of_a_plugin_runs_once_for_every_answer() -> None:
    notebook = Notebook()
    bench = Bench(config("each"), notebook, None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40, n=2))
    bench.add("b", "r:", SamplingParams(max_tokens=40))
    results = bench.run()
    assert {generation.text for generation in results.values()} == {TEXT}
    assert sorted(notebook.queries) == ["Aa bb."] * 3 + ["Cc dd."] * 3
    assert sorted(closed) == ["q:", "q:", "r:"]
    kinds = [event.kind for event in results["b", 0].trace if event.kind in ("pause", "retrieving", "retrieval")]
    assert kinds == ["pause", "retrieving", "retrieval"] * 2


def test_a_fault_ends_its_request_alone_and_names_the_policy() -> None:
    bench = GatedBench(config("faulty"), Library(), None, words(TEXT))
    reader = Reader(rewrites=False)
    bench.add("bad", "bad:", SamplingParams(max_tokens=40, n=2), listener=None)
    bench.add("good", "good:", SamplingParams(max_tokens=40), listener=reader)
    results = bench.run_prompt()
    for index in range(2):
        failed = results["bad", index]
        assert failed.finish_reason == "error"
        assert failed.error == "policy faulty failed: KeyError: 'no such thing'"
        assert failed.text.startswith("Aa bb. Cc dd.")
    assert results["good", 0].text == TEXT
    assert results["good", 0].finish_reason == "stop"


@pytest.mark.parametrize(("prompt", "failed"), [("first:", {0, 1, 2}), ("others:", {1, 2})])
def test_a_fault_at_the_beginning(prompt: str, failed: set[int]) -> None:
    bench = GatedBench(config("at-once"), Library(), None, words(TEXT))
    bench.add("a", prompt, SamplingParams(max_tokens=40, n=3))
    results = bench.run_prompt()
    assert {index for (_, index), generation in results.items() if generation.finish_reason == "error"} == failed
    assert {g.error for g in results.values() if g.error} == {"policy at-once failed: ValueError: not today"}


def test_what_is_no_effect_is_named() -> None:
    bench = Bench(config("nonsense"), Library(), None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40))
    error = bench.run()["a", 0].error
    assert error == "policy nonsense failed: TypeError: it yielded 'write', which asks for nothing"


def test_a_request_that_is_aborted_closes_its_policy() -> None:
    bench = Bench(config("each"), Library(), None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40))
    for _ in range(3):
        bench.core.step()
    assert closed == []
    bench.core.active.abort("a")
    assert closed == ["q:"]


def test_a_verdict_that_nobody_waits_for_comes_as_the_result_of_a_later_yield() -> None:
    bench = GatedBench(config("later"), None, Judge(lambda _: Verdict.REFUTED), words(TEXT))
    sequence = bench.add("a", "q:", SamplingParams(max_tokens=40))
    while len(sequence.output_text) < 15:
        bench.step()
    bench.verification.release()
    generation = bench.run_prompt()["a", 0]
    [rewind] = [event for event in generation.trace if event.kind == "rewind"]
    assert rewind.data["reason"] == "my reason"
    assert rewind.data["discarded_tokens"] >= 15
    assert generation.text == TEXT
    assert generation.sentences[0].removed == ("Aa bb.",)


def test_the_policies_of_the_guide_run() -> None:
    code = "\n".join(block.split("```")[0] for block in GUIDE.read_text(encoding="utf-8").split("```python\n")[2:])
    made: dict[str, Any] = {}
    exec(code, made)
    for name, kind in (("every_sentence", "retrieval"), ("once_more", "rewind"), ("twice", "answered")):
        registry.POLICIES._registered["guide"] = made[name]
        try:
            bench = Bench(config("guide"), Library(), Judge(lambda _: Verdict.REFUTED), words(TEXT))
            bench.add("a", "q:", SamplingParams(max_tokens=40))
            generation = bench.run()["a", 0]
        finally:
            del registry.POLICIES._registered["guide"]
        assert generation.finish_reason in ("stop", "length"), generation.error
        assert kind in {event.kind for event in generation.trace}
        rewinds = [event.kind for event in generation.trace].count("rewind")
        assert rewinds == (3 if name == "once_more" else 0)


def test_a_bare_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="policy 'function' must be a generator function under"):
        Bench(config("function"), Library(), None, words(TEXT))


def run_as(written: Any, retriever: Any = None, verifier: Any = None, **traits: Any) -> Generation:
    """What a policy with these traits makes of one prompt."""
    registry.POLICIES._registered["own"] = policy(**traits)(written)
    try:
        bench = Bench(config("own"), retriever, verifier, words(TEXT))
        bench.add("a", "q:", SamplingParams(max_tokens=40))
        return bench.run()["a", 0]
    finally:
        del registry.POLICIES._registered["own"]


@pytest.mark.parametrize(
    ("written", "effect", "trait"),
    [
        (retrieves, "Retrieve", "retrieves"),
        (checks, "Verify", "verifies"),
        (checks_texts, "VerifyTexts", "verifies"),
        (takes_back, "Rewind", "rewrites"),
        (asks, "Generate", "asks"),
        (gives_over, "Ask", "asks"),
    ],
)
def test_an_effect_that_the_engine_was_not_made_for_is_refused(written: Any, effect: str, trait: str) -> None:
    generation = run_as(written, Library(), Judge(lambda _: Verdict.SUPPORTED))
    assert generation.error == f"policy own failed: ValueError: {effect}: its @policy must say {trait}=True"


def test_a_unit_that_would_stand_where_the_text_stands_is_refused() -> None:
    assert "Remember: the text stands where units would" in run_as(remembers, Library()).error
    assert "Remember: the text stands where units would" in run_as(remembers, retrieves=True).error
    assert run_as(remembers, Library(), retrieves=True).error == ""


def test_text_that_nothing_holds_back_is_not_taken_back() -> None:
    assert "there is no verifier" in run_as(takes_back, Library(), retrieves=True, verifies=True, rewrites=True).error
    assert run_as(takes_back, Library(), rewrites=True).stats.rewrites == 1


def test_a_policy_that_asks_for_entropies_has_them_and_no_other_is_told_that_they_are_0() -> None:
    assert "reads_entropy=True" in run_as(doubtful, Library()).error
    for asks in (True, lambda settings: settings.retrieve_every == 1):
        noted.clear()
        assert run_as(doubtful, Library(), reads_entropy=asks).error == ""
        assert min(noted) > 0


def test_a_policy_that_needs_no_component_runs_without_one() -> None:
    assert run_as(takes_back, rewrites=True).stats.rewrites == 1
    assert run_as(takes_back, rewrites=True, needs_retriever=True).stats.rewrites == 0


def test_a_policy_that_only_verifies_is_plain_decoding_without_a_verifier_though_there_is_a_retriever() -> None:
    assert run_as(checks, Library(), verifies=True).text == TEXT
