"""Policies that ask for further texts: side by side, streamed, counted, stopped, and never in each other's way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from asking_bench import AskingBench, scripted
from engine_bench import Reader
from engine_parts import Answers, Notebook, sentences

from ewe.config import Config
from ewe.config.memory_mark import PlacedPrompt
from ewe.engine.request import Request
from ewe.engine.side_texts import Add, Ask, Asking, Decide, Generate, Reply, Search, VerifyTexts
from ewe.engine.status import status_of
from ewe.errors import InvalidRequestError
from ewe.types import (
    Generation,
    Passage,
    ScoredPassage,
    Verdict,
    VerificationRequest,
)
from ewe.types.sampling_params import SamplingParams

GREEDY = SamplingParams(max_tokens=40)


def config(policy: str = "ra", **groups: Any) -> Config:
    values = {"policy": policy, "memory": {"unit_tokens": 24, "retrieval_units": 2}, **groups}
    return Config.from_mapping(values)


def one_answer(bench: AskingBench, *args: Any, **options: Any) -> Generation:
    bench.ask("a", *args, **options)
    return bench.finish()["a", 0]


def kinds(generation: Generation) -> list[str]:
    return [event.kind for event in generation.trace]


def drafts_then_answer(question: str) -> Asking:
    """Two drafts, a decision, and an answer that is told of them."""
    one, two = yield Generate("drafts", (Ask(), Ask("other:", max_tokens=3)))
    yield Decide("told", {"drafts": [one.text, two.text]})
    return Ask(f"given {one.text} and {two.text}:")


def by_prompt(context: str, units: tuple[str, ...]) -> str:
    """Ten characters after the last colon, then the end: "draft" for the request's prompt, else the prompt's length."""
    prompt, written = context[: context.rindex(":") + 1], context[context.rindex(":") + 1 :]
    text = "a draft. " if prompt == "q:" else f"B {len(prompt)} c."
    return text[len(written)] if len(written) < len(text) else "\x00"


def test_what_the_policy_returns_is_the_answer_and_streams_as_it_is_written() -> None:
    reader = Reader(rewrites=False)
    bench = AskingBench(config(), scripted(drafts_then_answer), None, None, by_prompt)
    generation = one_answer(bench, listener=reader)

    final = "given a draft.  and B 6:"
    assert generation.text == reader.text == f"B {len(final)} c."
    assert generation.prompt == "q:"
    assert kinds(generation) == ["start", "asking", "answered", "decision", "asking", "commit", "finish"]
    asked = [event.data for event in generation.trace if event.kind == "asking"]
    assert asked == [
        {"step": "drafts", "prompts": ["", "other:"], "passages": [[], []]},
        {"step": "answer", "prompts": [final], "passages": [[]]},
    ]
    assert generation.trace[3].data == {"about": "told", "drafts": ["a draft. ", "B 6"]}
    assert len([event for event in reader.events if event.kind == "text"]) > 3
    assert [event.kind for event in reader.events].count("finish") == 1


def test_all_that_was_asked_is_counted() -> None:
    bench = AskingBench(config(), scripted(drafts_then_answer), None, None, by_prompt)
    stats = one_answer(bench).stats
    final = "given a draft.  and B 6:"
    assert stats.prompt_tokens == len("q:") + len("other:") + len(final)
    assert stats.tokens_kept == len(f"B {len(final)} c.") + 1
    assert stats.tokens_discarded == len("a draft. ") + 1 + 3
    passes = len(bench.runner.rows_run)
    assert stats.passes == sum(len(rows) for rows in bench.runner.rows_run) > passes
    assert stats.decode_s > 0


def test_steps_of_many_requests_share_passes_and_change_no_answer() -> None:
    params = SamplingParams(max_tokens=12)
    bench = AskingBench(config(), scripted(drafts_then_answer), script=sentences)
    for name in "abcdefghijklmnop":
        bench.ask(name, f"{name}:", params)
    together = bench.finish()
    for name in "afp":
        single = AskingBench(config(), scripted(drafts_then_answer), script=sentences)
        single.ask(name, f"{name}:", params)
        assert single.finish()[name, 0].text == together[name, 0].text
    assert max(len(rows) for rows in bench.runner.rows_run) == 16


def test_texts_count_as_sequences_of_their_tenant_and_who_asked_for_them_does_not() -> None:
    bench = AskingBench(config(), scripted(drafts_then_answer), script=by_prompt)
    bench.ask("a", tenant="t")
    bench.turn()
    bench.turn()
    status = status_of(bench.engine, 0.0)
    assert (status.running, status.waiting) == (2, 0)
    assert {sequence.request.original.tenant for sequence in bench.core.active.sequences} == {"t"}
    bench.finish()


def test_ra_puts_passages_into_the_prompt_where_units_would_stand() -> None:
    notebook, seen = Notebook(), []

    def script(context: str, units: tuple[str, ...]) -> str:
        seen.append((context, units))
        return "\x00"

    for prompt, wanted in (
        ("A b:", "Context: note 1\nA b:"),
        (PlacedPrompt("A b:", "u ", " A b:"), "u note 1 A b:"),
    ):
        bench = AskingBench(config(), None, notebook, None, script)
        generation = one_answer(bench, prompt, question="b")
        assert seen[-1] == (wanted, ())
        assert (generation.prompt, list(generation.sources)) == ("A b:", ["p1"])
        assert notebook.queries == ["b"]
        notebook.queries.clear()


class Shelf:
    """A retriever with many passages of twenty characters, and scores that fall from 1."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], int]] = []

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        self.asked.append((tuple(queries), top_k))
        hits = [ScoredPassage(Passage(f"p{n}", f"{n} " + "a" * 18), 1.0 - n / 100) for n in range(top_k)]
        return [hits for _ in queries]


def placed_ids(generation: Generation) -> list[str]:
    [data] = [event.data for event in generation.trace if event.kind == "asking"]
    return list(data["passages"][0])


def test_passages_are_as_many_as_asked_for_and_over_the_threshold() -> None:
    shelf = Shelf()
    settings = config(feedback={"retrieval_threshold": 0.975}, pipeline={"passages": 7})
    bench = AskingBench(settings, None, shelf, None, by_prompt)
    assert placed_ids(one_answer(bench)) == ["p0", "p1", "p2"]
    assert shelf.asked == [(("q:",), 7)]


@pytest.mark.parametrize(("max_tokens", "left"), [(40, 6), (100, 3), (10_000, 3)])
def test_passages_leave_the_answer_its_room(max_tokens: int, left: int) -> None:
    # 180 places; frame and prompt take 12, a passage 20.
    bench = AskingBench(config(), None, Shelf(), None, by_prompt, max_model_len=180)
    generation = one_answer(bench, params=SamplingParams(max_tokens=max_tokens))
    assert placed_ids(generation) == [f"p{number}" for number in range(left)]
    assert generation.sources.keys() == set(placed_ids(generation))


class Broken:
    """A retriever and verifier that raises, or waits for an event."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate = gate

    def retrieve(self, queries: Sequence[str], top_k: int) -> Any:
        if self.gate is None:
            raise RuntimeError("no index")
        self.gate.wait(60)

    def verify(self, requests: Sequence[VerificationRequest]) -> Any:
        return self.retrieve((), 0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_retrieval_that_fails_costs_its_passages_only() -> None:
    generation = one_answer(AskingBench(config(), None, Broken(), None, by_prompt))
    assert generation.text == "a draft. "
    [found] = [event.data for event in generation.trace if event.kind == "retrieval"]
    assert "no index" in found["error"]
    assert generation.stats.retrievals == 1


def test_components_that_hang_are_left_behind(gate: threading.Event) -> None:
    def steps(question: str) -> Asking:
        [found] = yield Search(("x",), 3)
        [result] = yield VerifyTexts((VerificationRequest(question, "", "B."),))
        return Ask(f"{len(found)} {' '.join(result.notes)}:")

    settings = config("rewrite-after", feedback={"timeout": 0.05}, verifier="builtin")
    bench = AskingBench(settings, scripted(steps), Broken(gate), Broken(gate), by_prompt)
    generation = one_answer(bench)
    asked = [event.data["prompts"] for event in generation.trace if event.kind == "asking"]
    assert asked == [["0 verification did not answer within 0.05 s:"]]
    assert generation.stats.verification_wait_s >= 0.05


def test_without_components_nothing_is_found_or_checked() -> None:
    def steps(question: str) -> Asking:
        found = yield Search(("x", "y"), 3)
        [result] = yield VerifyTexts((VerificationRequest(question, "", "B."),))
        return Ask(f"{len(found)} {found[0]} {result.notes[0]}:")

    generation = one_answer(AskingBench(config(), scripted(steps), None, None, by_prompt))
    assert generation.trace[1].data["prompts"] == ["2 () no verifier:"]
    assert generation.stats.retrievals == generation.stats.verifications == 0


REFUTED = Answers({"Bb.": [Verdict.REFUTED]}).verify([VerificationRequest("", "", "Bb.")])[0]
FINE = Answers({}).verify([VerificationRequest("", "", "Cc.")])[0]


def composed(question: str) -> Asking:
    yield Generate("draft", (Ask(),))
    yield Add("Aa.", FINE)
    yield Add(" Cc.", FINE, (("Bb.", REFUTED),))
    yield Add("\nDd.")
    return "stop"


def test_a_composed_answer_tells_readers_of_its_history() -> None:
    reader = Reader(rewrites=False)
    generation = one_answer(AskingBench(config(), scripted(composed, True), script=by_prompt), listener=reader)
    assert generation.text == reader.text == reader.draft == "Aa. Cc.\nDd."
    assert [(s.text, s.verdict, s.attempts, s.removed, s.reason) for s in generation.sentences] == [
        ("Aa.", "supported", 1, (), ""),
        ("Cc.", "supported", 2, ("Bb.",), ""),
        ("Dd.", "not_checked", 1, (), "no verifier"),
    ]
    assert all(generation.text[s.start : s.end] == s.text for s in generation.sentences)
    assert "about Bb." in generation.sources
    assert (generation.stats.rewrites, generation.stats.sentences) == (1, 3)
    assert len(generation.token_ids) == generation.stats.tokens_kept == len("Aa. Cc.\nDd.")
    assert generation.logprobs == ()


def test_stop_strings_end_a_composed_answer() -> None:
    params = SamplingParams(max_tokens=40, stop="c.")
    generation = one_answer(AskingBench(config(), scripted(composed, True), script=by_prompt), params=params)
    assert (generation.text, generation.finish_reason) == ("Aa. C", "stop")


def test_a_draft_that_is_returned_is_the_answer() -> None:
    def steps(question: str) -> Asking:
        replies: list[Reply] = yield Generate("draft", (Ask(top_logprobs=2),))
        [draft] = replies
        assert len(draft.top_logprobs[0]) == 2
        assert draft.mean_prob == pytest.approx(1.0, abs=1e-3)
        return draft

    reader = Reader(rewrites=False)
    generation = one_answer(AskingBench(config(), scripted(steps), script=by_prompt), listener=reader)
    assert (generation.text, generation.finish_reason) == ("a draft. ", "stop")
    assert reader.text == generation.text
    assert [sentence.text for sentence in generation.sentences] == ["a draft."]
    assert len(generation.logprobs) == len(generation.token_ids) == generation.stats.tokens_kept
    assert generation.stats.tokens_discarded == 0


def test_an_answer_goes_on_up_to_its_length() -> None:
    def steps(question: str) -> Asking:
        text = ""
        while True:
            [reply] = yield Generate("more", (Ask(begin=text, max_tokens=4),))
            yield Add(reply.text)
            text += reply.text

    bench = AskingBench(config(), scripted(steps, True), script=lambda context, units: "b")
    generation = one_answer(bench, params=SamplingParams(max_tokens=10))
    assert (generation.text, generation.finish_reason) == ("b" * 10, "length")
    contexts = [event.data["num_tokens"] for event in generation.trace if event.kind == "answered"]
    assert contexts == [[4], [4], [2]]


def test_an_abort_ends_a_request_wherever_it_is(gate: threading.Event) -> None:
    bench = AskingBench(config(), None, Broken(gate), None, by_prompt)
    bench.ask("waits")
    bench.core.active.abort("waits")
    assert bench.finished["waits", 0].finish_reason == "abort"

    bench = AskingBench(config(), scripted(drafts_then_answer), script=by_prompt)
    for name, turns in (("drafts", 3), ("answers", 14)):
        bench.ask(name)
        for _ in range(turns):
            bench.turn()
        bench.core.active.abort(name)
        assert bench.finish()[name, 0].finish_reason == "abort"
    assert bench.finished["answers", 0].text.startswith("B ")
    assert not bench.core.active.sequences


def test_the_deadline_ends_an_answer_with_its_draft(gate: threading.Event) -> None:
    def steps(question: str) -> Asking:
        yield Generate("draft", (Ask(),))
        yield Search(("x",), 3)
        raise AssertionError("the time is over")

    bench = AskingBench(config(), scripted(steps), Broken(gate), script=by_prompt)
    generation = one_answer(bench, params=SamplingParams(max_tokens=40, deadline_s=0.3))
    assert (generation.text, generation.finish_reason) == ("a draft. ", "timeout")


def test_a_pass_that_fails_ends_its_own_request() -> None:
    bench = AskingBench(config(), scripted(drafts_then_answer), script=by_prompt)
    bench.ask("a")
    bench.runner.fail_next = RuntimeError("no memory")
    bench.turn()
    bench.ask("b")
    found = bench.finish()
    assert found["a", 0].finish_reason == "error"
    assert "no memory" in found["a", 0].error
    assert found["b", 0].finish_reason == "stop"


def test_a_fault_of_a_policy_ends_its_request() -> None:
    def steps(question: str) -> Asking:
        if question == "bad:":
            raise KeyError("x")
        replies: list[Reply] = yield Generate("draft", (Ask(),))
        return replies[0]

    bench = AskingBench(config(), scripted(steps), script=by_prompt)
    bench.ask("a", "bad:")
    bench.ask("b")
    found = bench.finish()
    assert found["a", 0].error == "policy ra failed: KeyError: 'x'"
    assert found["b", 0].text == "a draft. "


def test_a_policy_may_ask_and_then_have_the_requests_own_prompt_written() -> None:
    def steps(question: str) -> Asking:
        [reply] = yield Generate("aside", (Ask("other:"),))
        yield Decide("told", {"text": reply.text})

    generation = one_answer(AskingBench(config(), scripted(steps)))
    plain = one_answer(AskingBench(config("plain"), None))
    assert (generation.token_ids, generation.logprobs) == (plain.token_ids, plain.logprobs)
    assert kinds(generation)[:4] == ["start", "asking", "answered", "decision"]
    assert generation.stats.prompt_tokens == len("other:") + len("q:")


def test_a_reply_of_its_own_making_is_no_answer() -> None:
    def steps(question: str) -> Asking:
        yield Decide("nothing")
        return Reply("made up")

    generation = one_answer(AskingBench(config(), scripted(steps)))
    assert generation.error == "policy ra failed: ValueError: it returned a Reply that the engine has not given"


def test_a_prompt_that_grows_too_long_is_an_error_of_its_request() -> None:
    def steps(question: str) -> Asking:
        yield Generate("long", (Ask("x" * 5000),))
        return "stop"

    generation = one_answer(AskingBench(config(), scripted(steps, True), script=by_prompt))
    assert generation.finish_reason == "error"
    assert "too long" in generation.error


def test_random_draws_depend_on_seed_answer_and_step() -> None:
    def steps(question: str) -> Asking:
        one, two = yield Generate("same", (Ask(), Ask()))
        yield Add(f"{one.text}|{two.text}|")
        return "stop"

    def texts(seed: int, n: int = 3) -> list[str]:
        bench = AskingBench(config(), scripted(steps, True))
        bench.ask("a", params=SamplingParams(max_tokens=8, temperature=1.0, seed=seed, n=n))
        return [bench.finish()["a", index].text for index in range(n)]

    first = texts(1)
    assert texts(1) == first
    assert texts(1, n=1) == first[:1]
    assert len({half for text in [*first, *texts(2)] for half in text.split("|")[:2]}) == 12


def test_documents_are_units_of_every_prompt() -> None:
    seen = set()

    def script(context: str, units: tuple[str, ...]) -> str:
        seen.add(units)
        return by_prompt(context, units)

    bench = AskingBench(config(), scripted(drafts_then_answer), script=script)
    generation = one_answer(bench, documents=["one fact", "two"])
    assert seen == {("one fact", "two")}
    assert generation.stats.refreshes == 6


@pytest.mark.parametrize(
    ("prompt", "params", "named"),
    [
        ([5, 6], SamplingParams(), "as a text"),
        ("q:", SamplingParams(prompt_logprobs=0), "prompt_logprobs"),
        ("q:", SamplingParams(logprobs=1), "logprobs"),
        ("q:", SamplingParams(json_schema={}), "json_schema"),
    ],
)
def test_what_cannot_be_had_is_refused(prompt: Any, params: SamplingParams, named: str) -> None:
    bench = AskingBench(config(), scripted(composed, True))
    with pytest.raises(InvalidRequestError, match=named):
        bench.core.policies.check(Request(prompt, params))


def test_log_probabilities_of_an_answer_of_one_piece_are_its_own() -> None:
    bench = AskingBench(config(), scripted(drafts_then_answer), script=by_prompt)
    generation = one_answer(bench, params=SamplingParams(max_tokens=40, logprobs=2))
    assert len(generation.logprobs) == len(generation.token_ids) == len(generation.top_logprobs)


def test_inner_texts_keep_to_none_of_the_answers_stops() -> None:
    params = SamplingParams(max_tokens=40, stop="c", min_tokens=2)
    generation = one_answer(AskingBench(config(), scripted(drafts_then_answer), script=by_prompt), params=params)
    [told] = [event.data["drafts"] for event in generation.trace if event.kind == "decision"]
    assert told == ["a draft. ", "B 6"]
    assert generation.text.endswith(" ")
