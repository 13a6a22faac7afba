"""Long-term memories in the engine: what it asks them, what becomes of what they bring, and what it tells them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from engine_parts import Answers, Judge, Notebook, sentences, words
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.evidence import workers
from ewe.engine.request import Request
from ewe.errors import ConfigError, InvalidRequestError
from ewe.types import Evidence, Generation, MemoryOptions, Passage, Query, ScoredPassage, Verdict
from ewe.types.sampling_params import SamplingParams

MEMORY = {"unit_tokens": 40, "retrieval_units": 3, "verification_units": 2}
PARAMS = SamplingParams(max_tokens=40)
ANN, BOB = MemoryOptions("ann"), MemoryOptions("bob", scope="own", threshold=0.9)


class Diary:
    """Remembers one thing of every user, and one of all; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Query] = []

    def recall(self, queries: Sequence[Query]) -> list[list[ScoredPassage]]:
        self.asked += queries
        return [self._of(query.memory.user) for query in queries]

    def learn(self, generation: Generation, evidence: Sequence[Evidence], options: MemoryOptions) -> None:
        raise AssertionError("the core does not teach")

    def close(self) -> None:
        pass

    def _of(self, user: str) -> list[ScoredPassage]:
        own = Passage(f"memory:{user}//1", "the same words", veracity=0.25)
        shared = Passage("memory://2", "all know it", veracity=0.5)
        return [ScoredPassage(own, 1.0, owner=user), ScoredPassage(shared, 0.5)]


def configured(**groups: Any) -> Config:
    return Config.from_mapping({"memory": MEMORY, "longterm": {"path": "somewhere"}, **groups})


def bench(diary: Diary, retriever: Any = None, verifier: Any = None, **groups: Any) -> Bench:
    feedback = {"retrieve_every": 1, "verify_every": 1, "max_attempts": 2}
    return Bench(configured(feedback=feedback, **groups), retriever, verifier, words("Aa. Bb."), memories=diary)


def add(on: Bench, name: str, memory: MemoryOptions | None, n: int = 1) -> Any:
    params = SamplingParams(max_tokens=40, n=n)
    sequence = on.engine.input_processor.build(name, Request("Tell me:", params, memory=memory))
    on.core.active.add(sequence)
    return sequence


def test_every_retrieval_says_whose_memories_may_be_used() -> None:
    diary = Diary()
    on = bench(diary, longterm={"path": "somewhere", "user": "zoe", "agent": "helper"})
    for name, memory in (("a", ANN), ("b", BOB), ("c", None)):
        add(on, name, memory, n=2)
    on.run()
    assert {query.memory for query in diary.asked} == {ANN, BOB, MemoryOptions("zoe", "helper")}
    assert {query.text for query in diary.asked} >= {"Tell me:", "Tell me: Aa."}


def test_memories_come_before_passages_and_weigh_what_they_are_believed() -> None:
    on = bench(Diary(), Notebook())
    add(on, "a", ANN)
    on.core.step()
    generation = on.run()["a", 0]
    first = next(event.data for event in generation.trace if event.kind == "retrieval")
    assert first["query"] == "Tell me:"
    assert [hit["id"] for hit in first["passages"]] == ["memory:ann//1", "memory://2", "p1"]
    weights = {
        event.data["passage"]["id"]: event.data["weight"] for event in generation.trace if event.kind == "refresh"
    }
    assert (weights["memory:ann//1"], weights["memory://2"], weights["p1"]) == (0.25, 0.5, 1.0)
    assert generation.sources["memory:ann//1"].text == "the same words"


def test_the_encoded_memory_of_a_user_is_shared_with_nobody_else() -> None:
    on = bench(Diary())
    cached: dict[str, dict[str, bool]] = {}
    for name, memory in (("a", ANN), ("b", ANN), ("c", BOB)):
        add(on, name, memory)
        trace = on.run()[name, 0].trace
        refreshes = [event.data for event in trace if event.kind == "refresh"]
        cached[name] = {item["passage"]["id"]: item["cached"] for item in refreshes}
    assert cached["a"] == {"memory:ann//1": False, "memory://2": False}
    assert cached["b"] == {"memory:ann//1": True, "memory://2": True}
    assert cached["c"] == {"memory:bob//1": False, "memory://2": True}, "the same words, but not his"


def test_a_text_that_somebody_guesses_does_not_tell_that_it_is_remembered() -> None:
    on = bench(Diary())
    add(on, "a", ANN)
    on.run()
    guess = on.engine.input_processor.build("b", Request("Tell me:", PARAMS, ["the same words"], memory=BOB))
    on.core.active.add(guess)
    [event] = [event for event in on.run()["b", 0].trace if event.kind == "refresh" and "document" in str(event.data)]
    assert event.data["cached"] is False


class Initials(Diary):
    """What it remembers of a user begins with the user's name."""

    def _of(self, user: str) -> list[ScoredPassage]:
        own = Passage(f"memory:{user}//1", f"{user} private", veracity=0.9)
        return [ScoredPassage(own, 1.0, owner=user), ScoredPassage(Passage("memory://2", "common"), 0.5)]


@examples(5, 15)
@given(
    users=st.lists(st.sampled_from("abc"), min_size=2, max_size=6),
    num_blocks=st.integers(64, 110),
    mode=st.sampled_from(["blocking", "optimistic"]),
)
def test_nobody_attends_to_anothers_memory_however_short_the_pool_is(
    users: list[str], num_blocks: int, mode: str
) -> None:
    wrong: list[tuple[str, tuple[str, ...]]] = []
    read: set[str] = set()

    def script(context: str, units: tuple[str, ...]) -> str:
        own = {unit for unit in units if "private" in unit}
        read.update(own)
        if own - {f"{context[0]} private"}:
            wrong.append((context, units))
        return sentences(context, units)

    values = {
        "memory": {"unit_tokens": 12, "retrieval_units": 2, "verification_units": 2},
        "feedback": {"mode": mode, "verify_every": 5, "retrieve_every": 3},
        "cache": {"block_size": 2},
        "scheduler": {"max_num_seqs": 4},
    }
    on = Bench(configured(**values), None, Judge(), script, num_blocks=num_blocks, memories=Initials())
    for number, user in enumerate(users):
        params = SamplingParams(max_tokens=24)
        on.core.active.add(
            on.engine.input_processor.build(f"r{number}", Request(f"{user} asks:", params, memory=MemoryOptions(user)))
        )
    finished = on.run()
    assert not wrong
    assert {generation.finish_reason for generation in finished.values()} <= {"length", "stop"}
    assert read == {f"{user} private" for user in users}


def test_memories_that_hang_cost_their_retrieval_and_not_the_answer() -> None:
    class Stuck(Diary):
        def __init__(self) -> None:
            super().__init__()
            self.gate = threading.Event()

        def recall(self, queries: Sequence[Query]) -> list[list[ScoredPassage]]:
            self.gate.wait()
            return [[] for _ in queries]

    stuck = Stuck()
    on = Bench(configured(feedback={"timeout": 0.05}), script=words("Aa."), memories=stuck)
    add(on, "a", ANN)
    generation = on.run()["a", 0]
    stuck.gate.set()
    assert generation.text == "Aa."
    errors = [event.data.get("error", "") for event in generation.trace if event.kind == "retrieval"]
    assert errors
    assert all("did not answer" in error for error in errors)


def test_the_evidence_of_every_check_is_kept_with_that_of_discarded_wordings() -> None:
    verdicts = {"Aa.": [Verdict.REFUTED]}
    on = bench(Diary(), verifier=Answers(verdicts))
    sequence = add(on, "a", ANN)
    generation = on.run()["a", 0]
    assert generation.sentences[0].removed
    assert len(sequence.evidence) >= 2
    assert {piece.passage.id for piece in sequence.evidence} == {"about Aa."}


def test_without_memories_a_request_for_them_is_refused() -> None:
    on = Bench(Config.from_mapping({"memory": MEMORY}), script=words("Aa."))
    with pytest.raises(InvalidRequestError, match=r"longterm\.path"):
        on.engine.input_processor.build("a", Request("Tell me:", PARAMS, memory=ANN))


def test_what_memories_bring_is_looked_at_like_a_retrievers_answer() -> None:
    class Odd(Diary):
        def recall(self, queries: Sequence[Query]) -> list[list[ScoredPassage]]:
            return [["a text"] for _ in queries]  # type: ignore[list-item]

    with pytest.raises(TypeError, match="ScoredPassage"):
        workers.retrieve(None, Odd(), 4, [Query("x")])


def test_answers_to_another_number_of_queries_are_refused() -> None:
    class Short(Diary):
        def recall(self, queries: Sequence[Query]) -> list[list[ScoredPassage]]:
            return []

    with pytest.raises(ValueError, match=r"shorter|longer"):
        workers.retrieve(Notebook(), Short(), 4, [Query("x")])


@pytest.mark.parametrize("given", [{}, {"veracity_weighting": "off"}, {"veracity_weighting": "power"}])
def test_units_of_memories_are_weighed_unless_the_settings_say_otherwise(given: dict[str, Any]) -> None:
    without = Config.from_mapping({"memory": given})
    config = Config.from_mapping({"memory": given, "longterm": {"path": "x"}})
    assert config.memory.veracity_weighting == given.get("veracity_weighting", "linear")
    assert without.memory.veracity_weighting == given.get("veracity_weighting", "off")
    assert config.override(["longterm.user=ann"]).memory == config.memory


@pytest.mark.parametrize(
    "wrong",
    [
        {"memory": {"retrieval_units": 0}},
        {"feedback": {"retrieval_threshold": 1.5}},
    ],
)
def test_settings_under_which_no_memory_could_be_used(wrong: dict[str, Any]) -> None:
    Config.from_mapping(wrong)
    with pytest.raises(ConfigError, match="longterm needs"):
        Config.from_mapping({**wrong, "longterm": {"path": "x"}})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scope": "theirs"}, "scope"),
        ({"scope": "own"}, "needs a user"),
        ({"threshold": 1.5}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"user": 7}, "strings"),
    ],
)
def test_options_that_mean_nothing_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        MemoryOptions(**values)
