"""Refuted sentences: how often they are written again, what is kept in the end, and what enters the memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mock_engine
import pytest
from engine_bench import Reader
from engine_parts import Answers, words
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.evidence.sentence_checks import Attempt, SentenceState
from ewe.engine.sampling.sampler import Token
from ewe.engine.scheduling import inflight_batch
from ewe.text.check_result import REPEATS
from ewe.types import (
    Claim,
    Generation,
    Passage,
    Verdict,
    VerificationResult,
)
from ewe.types.sampling_params import SamplingParams

NO, YES, MAYBE = Verdict.REFUTED, Verdict.SUPPORTED, Verdict.INCONCLUSIVE


def config(**feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 4}
    values = {"verify_every": 1, "max_attempts": 3, **feedback}
    return Config.from_mapping({"memory": memory, "feedback": values, "cache": {"block_size": 4}})


def write(settings: Config, script: Any, verifier: Any, params: SamplingParams | None = None) -> Generation:
    """One answer to "q:"; the stream has kept its promises and no block is lost."""
    bench = Bench(settings, None, verifier, script)
    reader = Reader()
    bench.add("a", "q:", params or SamplingParams(max_tokens=60), listener=reader)
    generation = bench.run()["a", 0]
    assert reader.text == generation.text
    for sentence in generation.sentences:
        assert generation.text[sentence.start : sentence.end] == sentence.text
        assert sentence.attempts == len(sentence.removed) + 1
    return generation


def kept(generation: Generation) -> list[tuple[Any, ...]]:
    return [(item.text, item.verdict, item.attempts, item.removed) for item in generation.sentences]


def redrawn(verifier: Answers, *wordings: str) -> Any:
    """A script: the n-th wording after n checks (then the last one), then " Bb."."""

    def next_character(context: str, units: tuple[str, ...]) -> str:
        text = wordings[min(len(verifier.seen), len(wordings) - 1)] + " Bb.\x00"
        return text[len(context[context.rindex(":") + 1 :])]

    return next_character


def test_a_refuted_sentence_is_written_again_until_it_holds() -> None:
    script = words("Good. Aa. Bb.", "Good. Ab. Cc.", "Good. Ac. Dd.")
    generation = write(config(), script, Answers({"Aa.": [NO], "Ab.": [YES, NO]}))
    assert kept(generation) == [("Good.", YES, 1, ()), ("Ac.", YES, 3, ("Aa.", "Ab.")), ("Dd.", YES, 1, ())]
    assert generation.text == "Good. Ac. Dd."
    assert generation.finish_reason == "stop"
    assert generation.stats.rewrites == 2
    assert generation.stats.tokens_discarded == sum(
        event.data["discarded_tokens"] for event in generation.trace if event.kind == "rewind"
    )
    assert generation.stats.tokens_kept == len(generation.token_ids) == len("Good. Ac. Dd.") + 1


def test_code_is_not_checked_while_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mock_engine, "ALPHABET", mock_engine.ALPHABET.replace("9", "~"))
    verifier = Answers({"Bb.": [NO]})
    generation = write(config(), words("Aa.\n~~~\nBb. Cc.\n~~~\nDd."), verifier)
    assert [request.sentence for request in verifier.seen] == ["Aa.", "Dd."]
    reasons = {sentence.text: sentence.reason for sentence in generation.sentences}
    assert (reasons["Aa."], reasons["Bb."], reasons["Dd."]) == ("", "no checkable claim: code", "")


def test_only_refuted_claims_cause_a_rewrite() -> None:
    verifier = Answers({"Aa.": [YES, MAYBE], "Bb.": []})
    generation = write(config(), words("Aa. Bb. Cc."), verifier)
    assert kept(generation) == [
        ("Aa.", MAYBE, 1, ()),
        ("Bb.", Verdict.NOT_CHECKED, 1, ()),
        ("Cc.", YES, 1, ()),
    ]
    assert generation.sentences[0].score == 0.5
    assert generation.sentences[1].reason == "no checkable claim"
    # What comes before the sentence goes along, for pronouns.
    assert [(r.prompt, r.preceding, r.sentence) for r in verifier.seen][-1] == ("q:", "Aa. Bb. ", "Cc.")


def test_what_is_not_supported_may_be_written_again_too() -> None:
    verdicts = {"Aa.": [MAYBE], "Ab.": [MAYBE, NO], "Ac.": [YES]}
    verifier = Answers(verdicts)
    generation = write(config(rewrite_when="unsupported"), redrawn(verifier, "Aa.", "Ab.", "Ac."), verifier)
    assert kept(generation) == [("Ac.", YES, 3, ("Aa.", "Ab.")), ("Bb.", YES, 1, ())]
    assert [event.data["reason"] for event in generation.trace if event.kind == "rewind"] == ["unsupported", "refuted"]


def test_if_no_wording_is_supported_an_open_one_comes_before_a_refuted_one() -> None:
    verdicts = {"Aa.": [MAYBE], "Ab.": [NO], "Ac.": [NO]}
    verifier = Answers(verdicts)
    generation = write(config(rewrite_when="unsupported"), redrawn(verifier, "Aa.", "Ab.", "Ac."), verifier)
    assert kept(generation) == [("Aa.", MAYBE, 3, ("Ab.", "Ac.")), ("Bb.", YES, 1, ())]


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_attempts_are_bounded_and_flagged(limit: int) -> None:
    texts = [f"A{letter}o. Bb." for letter in "abcdef"]
    verifier = Answers({f"A{letter}o.": [NO] for letter in "abcdef"})
    generation = write(config(max_attempts=limit, on_exhausted="flag"), words(*texts), verifier)
    removed = tuple(f"A{letter}o." for letter in "abcdef"[: limit - 1])
    assert kept(generation) == [(f"A{'abcdef'[limit - 1]}o.", NO, limit, removed), ("Bb.", YES, 1, ())]
    assert generation.stats.rewrites == limit - 1


def test_keep_best_puts_the_best_attempt_back_with_its_own_verdict() -> None:
    verdicts = {"Aa.": [NO, YES, YES], "Abc.": [NO, NO], "Ac.": [NO, MAYBE, MAYBE]}
    script = words("Good. Aa. Bb.", "Good. Abc. Cc.", "Good. Ac. Dd.")
    generation = write(config(), script, Answers(verdicts))
    assert kept(generation) == [("Good.", YES, 1, ()), ("Aa.", NO, 3, ("Abc.", "Ac.")), ("Dd.", YES, 1, ())]
    best = generation.sentences[1]
    assert [claim.verdict for claim in best.claims] == [NO, YES, YES]
    assert best.score == pytest.approx(2 / 3)
    assert best.source_ids == ("about Aa.",)
    # The text went on after the attempt that was put back, under the memory of now.
    assert generation.text == "Good. Aa. Dd."
    assert generation.finish_reason == "stop"
    assert len(generation.token_ids) == len(generation.logprobs) == len(generation.text) + 1


def test_keep_best_prefers_the_latest_of_equals_and_leaves_it_where_it_is() -> None:
    verdicts = {"Aa.": [NO], "Ab.": [NO]}
    generation = write(config(max_attempts=2), words("Aa. Bb.", "Ab. Cc."), Answers(verdicts))
    assert kept(generation) == [("Ab.", NO, 2, ("Aa.",)), ("Cc.", YES, 1, ())]
    assert generation.stats.rewrites == 1


@pytest.mark.parametrize("max_tokens", [5, 6])
def test_an_attempt_that_is_put_back_never_makes_the_text_too_long(max_tokens: int) -> None:
    verdicts = {"Aabcd": [NO, YES], "Aabcd.": [NO, YES], "Ab.": [NO, NO]}
    generation = write(
        config(max_attempts=2), words("Aabcd.", "Ab. C."), Answers(verdicts), SamplingParams(max_tokens=max_tokens)
    )
    assert len(generation.token_ids) == max_tokens
    assert generation.finish_reason == "length"
    assert generation.sentences[0].text == "Aabcd."[:max_tokens]


def test_drop_leaves_the_sentence_out_and_starts_afresh() -> None:
    texts = ("Good. Aa. Bb.", "Good. Ab. Bb.", "Good. Hello. Bb.")
    verdicts = {"Aa.": [NO], "Ab.": [NO]}
    settings = config(max_attempts=2, on_exhausted="drop")
    generation = write(settings, words(*texts), Answers(verdicts))
    assert kept(generation) == [("Good.", YES, 1, ()), ("Hello.", YES, 1, ()), ("Bb.", YES, 1, ())]
    assert [event.data["reason"] for event in generation.trace if event.kind == "rewind"] == ["refuted", "drop"]


class Ear(Answers):
    """A verifier that hears repetitions."""

    def _judge(self, sentence: str) -> VerificationResult:
        said_before = [request.sentence for request in self.seen[:-1]]
        return VerificationResult(reason=REPEATS) if sentence in said_before else super()._judge(sentence)


def test_a_repeated_sentence_is_left_out_and_the_text_ends_if_another_comes() -> None:
    script = words("Good. Aa. Good. Bb. Cc.")
    generation = write(config(), script, Ear({}))
    assert generation.text.rstrip() == "Good. Aa."
    assert [event.data["reason"] for event in generation.trace if event.kind == "rewind"] == ["drop", "drop"]
    assert [sentence.text for sentence in generation.sentences] == ["Good.", "Aa."]


def test_a_repeated_sentence_may_be_kept() -> None:
    generation = write(config(on_repeat="keep"), words("Good. Aa. Good. Bb."), Ear({}))
    assert generation.text == "Good. Aa. Good. Bb."
    assert generation.sentences[2].reason == "no checkable claim: repeats an earlier sentence"


def test_a_second_drop_at_the_same_place_ends_the_text() -> None:
    verdicts = {f"A{letter}o.": [NO] for letter in "abcdefg"}
    texts = [f"Good. A{letter}o. Bb." for letter in "abcdefg"]
    generation = write(config(max_attempts=2, on_exhausted="drop"), words(*texts), Answers(verdicts))
    assert kept(generation) == [("Good.", YES, 1, ())]
    assert generation.text.rstrip() == "Good."
    assert generation.finish_reason == "stop"
    assert generation.stats.rewrites == 4


def temperatures(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Notes (tokens so far, temperature) of every draw."""
    seen: list[tuple[int, float]] = []
    sample = inflight_batch.sample

    def spy(logits: Any, rows: Any, with_entropy: bool) -> Any:
        seen.extend((len(row.output_ids), row.temperature) for row in rows)
        return sample(logits, rows, with_entropy)

    monkeypatch.setattr(inflight_batch, "sample", spy)
    return seen


def test_greedy_without_news_is_drawn_hotter_and_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same evidence comes every time: the first time it is news, from then on it is not."""
    seen = temperatures(monkeypatch)
    verifier = Answers({"Aa.": [NO]}, evidence=Passage("always", "the same"))
    settings = config(max_attempts=4, retry_temperature=0.9, on_exhausted="flag")
    generation = write(settings, words("Good. Aa. Bb."), verifier)
    # The script is certain, so even the hot draws repeat it: without the bound this would never end.
    assert kept(generation) == [("Good.", YES, 1, ()), ("Aa.", NO, 4, ("Aa.", "Aa.", "Aa.")), ("Bb.", YES, 1, ())]
    first_hot = next(i for i, (_, temperature) in enumerate(seen) if temperature)
    rewound = [i for i in range(1, len(seen)) if seen[i][0] <= seen[i - 1][0]]
    assert first_hot == rewound[1]  # not after the first rewind, which brought the passage
    assert {temperature for _, temperature in seen} == {0.0, 0.9}
    assert seen[-1][1] == 0.0  # the sentences after it are greedy again


def test_a_rewrite_without_news_really_differs() -> None:
    bench = Bench(config(max_attempts=9), None, Answers({"Aa.": [NO]}, Passage("p", "old")), words("Good. Aa. Bb."))
    bench.runner.strength = 5.0
    bench.add("a", "q:", SamplingParams(max_tokens=30), documents=[Passage("p", "old")])
    generation = bench.run()["a", 0]
    sentence = generation.sentences[1]
    assert sentence.removed
    assert sentence.text != "Aa."


class Weighed(Answers):
    """Answers whose claims also tell how much evidence supports them."""

    def __init__(self, verdicts: dict[str, list[Verdict]], support: dict[str, float]) -> None:
        super().__init__(verdicts)
        self._support = support

    def _judge(self, sentence: str) -> VerificationResult:
        result = super()._judge(sentence)
        support = self._support.get(sentence, 1.0)
        return replace(result, claims=tuple(replace(claim, support=support) for claim in result.claims))


def test_a_disputed_wording_is_not_replaced_by_one_that_nothing_supports() -> None:
    verifier = Weighed({"Aa.": [NO], "Ab.": [MAYBE]}, {"Aa.": 0.4, "Ab.": 0.0})
    generation = write(config(), words("Good. Aa. Bb.", "Good. Ab. Cc.", "Good. Ac. Dd."), verifier)
    assert kept(generation) == [("Good.", YES, 1, ()), ("Aa.", NO, 2, ("Ab.",)), ("Cc.", YES, 1, ())]
    reasons = [event.data["reason"] for event in generation.trace if event.kind == "rewind"]
    assert reasons == ["refuted", "less supported"]


@pytest.mark.parametrize(("before", "after"), [(0.1, 0.0), (0.4, 0.3), (0.0, 0.0)])
def test_a_wording_that_is_supported_alike_stays(before: float, after: float) -> None:
    verifier = Weighed({"Aa.": [NO], "Ab.": [MAYBE]}, {"Aa.": before, "Ab.": after})
    generation = write(config(), words("Good. Aa. Bb.", "Good. Ab. Cc."), verifier)
    assert [text for text, *_ in kept(generation)] == ["Good.", "Ab.", "Cc."]


def test_flagged_wordings_are_never_put_back() -> None:
    verifier = Weighed({"Aa.": [NO], "Ab.": [MAYBE]}, {"Aa.": 0.9, "Ab.": 0.0})
    generation = write(config(on_exhausted="flag"), words("Good. Aa. Bb.", "Good. Ab. Cc."), verifier)
    assert [text for text, *_ in kept(generation)] == ["Good.", "Ab.", "Cc."]


def test_of_wordings_the_unsupported_are_better_than_the_contradicted_and_then_the_likelier() -> None:
    def attempt(claims: list[Claim], logprob: float = 0.0, score: float = 0.0) -> Attempt:
        tokens = (Token(5, logprob, 0.0), Token(6, logprob, 0.0))
        return Attempt("Aa.", tokens, SentenceState(Verdict.REFUTED, score, tuple(claims)))

    contradicted = Claim("a", verdict=NO)
    unsupported = Claim("a", verdict=NO, reason="unsupported")
    in_order = [
        attempt([contradicted]),
        attempt([unsupported, unsupported]),
        attempt([unsupported], logprob=-2.0),
        attempt([unsupported], logprob=-0.5),
        attempt([unsupported, Claim("b", verdict=YES)], logprob=-3.0, score=0.5),
    ]
    ranks = [one.rank for one in in_order]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)
