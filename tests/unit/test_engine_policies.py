"""Policies: when the engine looks, with which query, and what FLARE, RAG and plain decoding do."""

from __future__ import annotations

import math
from typing import Any

import pytest
from engine_parts import Judge, Notebook, words
from engine_tokenizers import PieceTokenizer
from mock_engine import Bench

from ewe.config import Config, FeedbackConfig
from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.effects import Paused, Retrieve, Verify, Write
from ewe.engine.evidence.sentence_checks import Progress
from ewe.engine.policy_answer import Answer
from ewe.engine.sampling.sampler import Token
from ewe.policies.ewe import ewe
from ewe.policies.plain import plain
from ewe.text.sentences import SentenceSplitter
from ewe.types import Generation, Passage, ScoredPassage, Verdict
from ewe.types.sampling_params import SamplingParams

SPLITTER = SentenceSplitter()
TEXT = "Aa bb. Cc dd. Ee ff."


def config(policy: str = "ewe", **feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"policy": policy, "memory": memory, "feedback": feedback})


def write(settings: Config, retriever: Any, verifier: Any, script: Any, **bench: Any) -> Generation:
    engine = Bench(settings, retriever, verifier, script, **bench)
    engine.add("a", "q:", SamplingParams(max_tokens=40))
    return engine.run()["a", 0]


def pauses(generation: Generation, kind: str) -> list[int]:
    """After how many tokens the answer paused for it."""
    return [e.num_tokens for e in generation.trace if e.kind == "pause" and kind in e.data["for"]]


# --- EWE: intervals


def test_retrieval_queries_with_the_prompt_and_each_new_sentence_once() -> None:
    notebook = Notebook()
    generation = write(config(retrieve_every=1), notebook, None, words(TEXT))
    # The first retrieval fills the memory before anything is computed. A sentence is complete when the next begins.
    assert notebook.queries == ["q:", "q: Aa bb.", "q: Cc dd."]
    assert pauses(generation, "retrieval") == [8, 15]
    assert generation.stats.retrievals == 3


@pytest.mark.parametrize(("refresh", "evicted"), [("fifo", ["q:"]), ("lowest_score", ["q: Aa bb."])])
def test_a_full_lane_makes_room_in_the_order_that_is_set(refresh: str, evicted: list[str]) -> None:
    scores = {"q:": 0.9, "q: Aa bb.": 0.5, "q: Cc dd.": 0.7}

    class Scored:
        def retrieve(self, queries: list[str], top_k: int) -> list[list[ScoredPassage]]:
            return [[ScoredPassage(Passage(query, f"fact of {query}"), scores[query])] for query in queries]

    settings = config(retrieve_every=1).override([f"memory.refresh={refresh}"])
    generation = write(settings, Scored(), None, words(TEXT))
    names = {e.data["unit_id"]: e.data["passage"]["id"] for e in generation.trace if e.kind == "refresh"}
    assert [names[e.data["unit_id"]] for e in generation.trace if e.kind == "evict"] == evicted


@pytest.mark.parametrize("every", [1, 4, 7, 10, 16])
def test_looks_happen_at_multiples_of_the_intervals_only(every: int) -> None:
    judge = Judge(lambda _: Verdict.SUPPORTED)
    settings = config(retrieve_every=every, verify_every=every + 1)
    generation = write(settings, Notebook(), judge, words(TEXT))
    assert all(count % every == 0 for count in pauses(generation, "retrieval"))
    *between, last = pauses(generation, "verification")
    assert all(count % (every + 1) == 0 for count in between)
    assert last == len(generation.token_ids)  # the rest is checked when the text has ended
    assert judge.seen == ["Aa bb.", "Cc dd.", "Ee ff."]
    assert all(sentence.verdict is Verdict.SUPPORTED for sentence in generation.sentences)


def test_a_look_without_a_new_sentence_opens_no_pause() -> None:
    generation = write(config(verify_every=2), None, Judge(lambda _: Verdict.SUPPORTED), words(TEXT))
    assert pauses(generation, "verification") == [8, 16, 21]


def test_several_sentences_at_one_look_make_one_query_and_one_check() -> None:
    notebook, judge = Notebook(), Judge(lambda _: Verdict.SUPPORTED)
    generation = write(config(retrieve_every=15, verify_every=15), notebook, judge, words(TEXT))
    assert notebook.queries == ["q:", "q: Aa bb. Cc dd."]
    assert next(e.data["for"] for e in generation.trace if e.kind == "pause") == ["retrieval", "verification"]
    assert generation.stats.verifications == 2
    assert generation.stats.verification_wait_s >= 0


# --- EWE: triggers


def answer(*tokens: tuple[str, float, float]) -> Answer:
    """An answer of which (piece, probability, entropy) have been written."""
    bench = Bench(config(), Notebook(), Judge(), words(TEXT))
    sequence = bench.add("a", "P")
    sequence.output_text = OutputText(PieceTokenizer([piece for piece, _, _ in tokens]), SPLITTER, [])
    for index, (_, probability, entropy) in enumerate(tokens):
        sequence.output_text.append(Token(index, math.log(probability), entropy))
    sequence.output_text.find_sentences()
    return Answer(sequence, False, True, True, None, False, None)


SURE_THEN_UNSURE = ("Aa.", 0.9, 0.1), (" Bb", 0.3, 0.9), (" cc.", 0.8, 0.5), (" Dd", 0.9, 0.0), (" e", 1.0, 0.0)


def test_probabilities_of_a_sentence() -> None:
    tokens = zip(["One", " is", ".", " Two", "."], [0.9, 0.2, 0.5, 0.01, 0.7], range(5), strict=True)
    seen = answer(*tokens)
    seen.text.finish()
    assert [seen.words(index) for index in range(2)] == ["One is.", "Two."]
    assert [seen.min_prob(index) for index in range(2)] == pytest.approx([0.2, 0.01])
    assert [seen.mean_entropy(index) for index in range(2)] == pytest.approx([(0 + 1 + 2) / 3, (3 + 4) / 2])
    assert seen.words_without(0, lambda token: token.id == 1) == "One."
    assert seen.words_without(1, lambda token: token.id == 4) == "Two"


def look(seen: Answer, **feedback: Any) -> tuple[str, tuple[int, ...]]:
    """The query and the sentences to check after five tokens."""
    steps = ewe(seen, FeedbackConfig(retrieve_every=5, verify_every=5, **feedback))
    assert next(steps) == Write(every=(5, 5))
    yielded = _until_write(steps)
    queries = [effect.query for effect in yielded if isinstance(effect, Retrieve)]
    checks = [effect.sentences for effect in yielded if isinstance(effect, Verify)]
    return "".join(queries), sum(checks, ())


def _until_write(steps: Any) -> list[Any]:
    effect, yielded = steps.send(Paused()), []
    while not isinstance(effect, Write):
        yielded.append(effect)
        effect = next(steps)
    return yielded


@pytest.mark.parametrize(
    ("feedback", "query", "verify"),
    [
        ({}, "P Aa. Bb cc.", (0, 1)),
        ({"retrieve_when": "entropy", "retrieve_entropy": 0.5}, "P Bb cc.", (0, 1)),
        ({"retrieve_when": "entropy", "retrieve_entropy": 0.7}, "", (0, 1)),  # the mean is 0.7: not over it
        ({"verify_when": "entropy", "verify_entropy": 0.05}, "P Aa. Bb cc.", (0, 1)),
        ({"verify_when": "entropy", "verify_entropy": 0.6}, "P Aa. Bb cc.", (1,)),
        ({"retrieve_when": "min_prob", "retrieve_min_prob": 0.31}, "P Bb cc.", (0, 1)),
        ({"retrieve_when": "min_prob", "retrieve_min_prob": 0.29}, "", (0, 1)),
        ({"verify_when": "min_prob", "verify_min_prob": 0.4}, "P Aa. Bb cc.", (1,)),
        ({"verify_when": "min_prob", "verify_min_prob": 0.95}, "P Aa. Bb cc.", (0, 1)),
    ],
)
def test_triggers_choose_the_sentences(feedback: dict[str, Any], query: str, verify: tuple[int, ...]) -> None:
    seen = answer(*SURE_THEN_UNSURE)
    assert look(seen, **feedback) == (query, verify)
    assert seen.progress == Progress(2, 2)  # looked at is dealt with, whatever the trigger said
    assert ewe.reads_entropy(FeedbackConfig(**feedback)) == ("entropy" in feedback.values())


def test_only_what_is_new_is_looked_at() -> None:
    seen = answer(*SURE_THEN_UNSURE)
    seen.progress.retrieved, seen.progress.verified = 1, 2
    assert look(seen) == ("P Bb cc.", ())


def test_a_trigger_that_does_not_fire_settles_the_sentence_unchecked() -> None:
    settings = config(verify_when="min_prob", verify_min_prob=0.0, verify_every=1)
    judge = Judge(lambda _: Verdict.REFUTED)
    generation = write(settings, None, judge, words(TEXT))
    assert judge.seen == []
    assert {(s.verdict, s.reason) for s in generation.sentences} == {
        (Verdict.NOT_CHECKED, "the trigger did not ask for a check")
    }


# --- RAG, plain, FLARE


def test_rag_fills_the_memory_once_and_never_pauses() -> None:
    notebook = Notebook()
    generation = write(config("rag"), notebook, Judge(), words("", TEXT))
    assert notebook.queries == ["q:"]
    assert generation.text == TEXT  # written under one unit
    kinds = {event.kind for event in generation.trace}
    assert kinds == {"start", "retrieving", "retrieval", "refresh", "commit", "finish"}
    assert {(s.verdict, s.reason) for s in generation.sentences} == {(Verdict.NOT_CHECKED, "no verifier")}


def test_plain_never_looks() -> None:
    notebook, judge = Notebook(), Judge()
    generation = write(config("plain"), notebook, judge, words(TEXT))
    assert notebook.queries == judge.seen == []
    assert [event.kind for event in generation.trace] == ["start", "commit", "commit", "commit", "finish"]


def test_plain_uses_documents() -> None:
    bench = Bench(config("plain"), None, None, words("Aa.", "Bb."))
    bench.add("a", "q:", SamplingParams(max_tokens=9), documents=["one"])
    bench.add("b", "q:", SamplingParams(max_tokens=9))
    results = bench.run()
    assert (results["a", 0].text, results["b", 0].text) == ("Bb.", "Aa.")
    assert results["a", 0].sources.keys() == {"document-1"}


@pytest.mark.parametrize(
    ("policy", "retriever", "verifier", "is_plain", "holds_text"),
    [
        ("ewe", None, None, True, False),
        ("rag", None, Judge(), True, False),
        ("flare", None, Judge(), True, False),
        ("rag", Notebook(), None, False, False),
        ("flare", Notebook(), None, False, True),
        ("ewe", None, Judge(), False, True),
        ("ewe", Notebook(), None, False, False),
    ],
)
def test_without_components_policies_degenerate(
    policy: str, retriever: Any, verifier: Any, is_plain: bool, holds_text: bool
) -> None:
    runner = Bench(config(policy), retriever, verifier).core.policies
    assert (runner.policy is plain, runner.holds_text) == (is_plain, holds_text)


def test_small_talk_is_not_looked_up_for_any_of_several_answers() -> None:
    notebook = Notebook()
    bench = Bench(config(retrieve_every=1), notebook, None, words(TEXT))
    bench.add("a", "Say hi:", SamplingParams(max_tokens=40, n=2))
    bench.run()
    assert notebook.queries == []
