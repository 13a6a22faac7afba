"""What an Ask may want of its text: an end with a sentence, and passages that others are asked under, too."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from asking_bench import AskingBench, scripted
from mock_engine import ALPHABET

from ewe.config import Config
from ewe.engine.side_texts import Ask, Asking, Generate, Reply
from ewe.types import Passage
from ewe.types.sampling_params import SamplingParams

CONFIG = Config.from_mapping({"policy": "ra", "memory": {"unit_tokens": 24, "retrieval_units": 2}})


def replies_to(*asks: Ask, goes_on: str = "", strength: float = 20.0) -> tuple[list[Reply], AskingBench]:
    """What is written for asks that go side by side: each the same after its prompt's colon and its beginning."""
    found: list[Reply] = []

    def steps(question: str) -> Asking:
        found.extend((yield Generate("texts", asks)))
        return found[0]

    def script(context: str, units: tuple[str, ...]) -> str:
        written = context.partition(":")[2]
        return goes_on[len(written)] if len(written) < len(goes_on) else "\x00"

    bench = AskingBench(CONFIG, scripted(steps), script=script)
    bench.runner.strength = strength
    bench.ask("a", params=SamplingParams(max_tokens=60))
    bench.finish()
    return found, bench


@pytest.mark.parametrize(
    ("begin", "sentence", "written"),
    [
        ("Dr", "Dr", ". Bee fell. A"),  # the full stop of a title ends nothing
        ("Ah. Dr", "Dr", ". Bee fell. A"),
        ("", "", "Ah. D"),
        ("", None, "Ah. Dr. Bee fell. And so on."),
    ],
)
def test_a_text_goes_on_until_its_sentence_has_surely_ended(begin: str, sentence: str | None, written: str) -> None:
    goes_on = "Dr. Bee fell. And so on." if begin == "Dr" else "Ah. Dr. Bee fell. And so on."
    [reply], _ = replies_to(Ask(begin=begin, sentence=sentence), goes_on=goes_on)
    assert reply.text == written
    assert reply.finish_reason == ("stop" if sentence is None else "length")


def test_a_text_that_ends_first_has_stopped() -> None:
    [reply], _ = replies_to(Ask(sentence=""), goes_on="Ah.")
    assert (reply.text, reply.finish_reason) == ("Ah.", "stop")


def test_the_probability_is_that_of_the_sentence() -> None:
    [reply], _ = replies_to(Ask(sentence=""), goes_on="Ah. Dr.", strength=6.0)
    assert reply.source is not None
    logprobs = [token.logprob for token in reply.source.output_text.tokens]
    assert len(logprobs) == len("Ah. D")
    assert reply.mean_prob == pytest.approx(math.exp(fmean(logprobs[: len("Ah.")])))
    assert reply.mean_prob != pytest.approx(math.exp(fmean(logprobs)), abs=1e-4)


def test_drafts_of_a_greedy_request_may_be_drawn_with_a_temperature_of_their_own() -> None:
    same, _ = replies_to(*[Ask()] * 4, goes_on="Ah. Dr. Bee fell. And so on.", strength=1.0)
    drawn, _ = replies_to(*[Ask(temperature=1.0)] * 4, goes_on="Ah. Dr. Bee fell. And so on.", strength=1.0)
    assert len({reply.text for reply in same}) == 1
    assert len({reply.text for reply in drawn}) > 1


def prompts_and_encodings(bench: AskingBench, words: str) -> tuple[set[str], int]:
    """All prompts as the model saw them, and how often it encoded these words."""
    prompts, count = set(), 0
    for row in (row for rows in bench.runner.rows_run for row in rows):
        prefix = [] if row.prefix_slots is None else bench.runner._read(row.prefix_slots)[0]
        if row.wants_logits and len(row.token_ids) > 1:
            prompts.add("".join(ALPHABET[token] for token in [*prefix, *row.token_ids]))
            assert row.start_position == len(prefix), "the positions have a hole"
        count += words in "".join(ALPHABET[token] for token in row.token_ids)
    return prompts, count


@pytest.mark.parametrize(("shared", "count"), [("", 1), (None, 3)])
def test_shared_passages_are_encoded_once(shared: str | None, count: int) -> None:
    passages, texts = (Passage("p", "a bee fell in"),), ("so it did:", "did it so:")
    asks = tuple(Ask(text, passages, max_tokens=2, shared=shared) for text in texts)
    _, bench = replies_to(*asks, Ask(None, passages, shared=shared))
    prompts = {f"Context: a bee fell in\n{text}" for text in (*texts, "q:")}
    assert prompts_and_encodings(bench, "a bee fell in") == (prompts, count)


@pytest.mark.parametrize(("shared", "count"), [("it fell", 1), ("nowhere", 2)])
def test_prompts_that_begin_alike_are_encoded_once_up_to_where_they_differ(shared: str, count: int) -> None:
    texts = ("is it: it fell in.", "is it: it fell on it.")
    _, bench = replies_to(*(Ask(text, max_tokens=2, shared=shared) for text in texts))
    assert prompts_and_encodings(bench, "is it: it fell") == (set(texts), count)
