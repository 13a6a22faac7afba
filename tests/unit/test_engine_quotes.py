"""Sentences of passages that take the place of sentences that are not to stand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from engine_bench import GatedBench, Reader
from engine_parts import Answers, Library, number, words
from engine_tokenizers import byte_level, sentencepiece_like
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import ALPHABET, Bench

from ewe.config import Config, FeedbackConfig
from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.policy_runtime.quoting import written
from ewe.policies import ewe as policy_ewe
from ewe.policies import replacements
from ewe.policies.replacements import settled
from ewe.server.answering.answers import ewe_result
from ewe.text.check_result import REPEATS
from ewe.text.overviews import asks_for_all
from ewe.text.quotation import Quotation
from ewe.text.sentences import code_blocks
from ewe.types import (
    Claim,
    Evidence,
    Generation,
    Passage,
    ScoredPassage,
    Verdict,
    VerificationRequest,
    VerificationResult,
)
from ewe.types.sampling_params import SamplingParams

NO, YES, MAYBE = Verdict.REFUTED, Verdict.SUPPORTED, Verdict.INCONCLUSIVE
PROMPT = "Tell me about Dia Bee:"
FOUND = "Dia Bee is a big old ice cave in far hills."
FACTS = Passage("facts", f"Cold air. {FOUND} And so Dia Bee is in all of the old books here.", "Dia Bee", "books")


def config(**feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 4}
    values = {"verify_every": 1, "max_attempts": 2, "on_exhausted": "quote", **feedback}
    return Config.from_mapping({"memory": memory, "feedback": values, "cache": {"block_size": 4}})


def write(
    settings: Config, script: Any, verifier: Any, params: SamplingParams | None = None
) -> tuple[Generation, list[StreamEvent]]:
    bench, reader = Bench(settings, None, verifier, script), Reader()
    bench.add("a", PROMPT, params or SamplingParams(max_tokens=120), listener=reader)
    generation = bench.run()["a", 0]
    assert reader.text == generation.text
    return generation, reader.events


def remembering(settings: Config, script: Any, verifier: Any) -> Generation:
    """An answer with FACTS in memory from the start."""
    bench = Bench(settings, None, verifier, script)
    bench.add("a", PROMPT, SamplingParams(max_tokens=120), documents=[FACTS])
    return bench.run()["a", 0]


def refuting(*sentences: str, evidence: Passage = FACTS) -> Answers:
    return Answers({sentence: [NO] for sentence in sentences}, evidence)


def reasons(generation: Generation) -> list[str]:
    return [event.data["reason"] for event in generation.trace if event.kind == "rewind"]


def test_a_sentence_of_the_evidence_stands_in_the_place_of_one_that_stays_refuted() -> None:
    script = words("Good. Aa. Bb.", f"Good. Ab. {FOUND} Cc.")

    def follow(context: str, units: tuple[str, ...]) -> str:
        text = context[context.rindex(":") + 1 :]
        after = " Cc.\x00"
        return after[len(text.partition(FOUND)[2])] if FOUND in text else script(context, units)

    generation, events = write(config(), follow, refuting("Aa.", "Ab."))
    assert generation.text == f"Good. {FOUND} Cc."
    assert [(item.text, item.verdict, item.quotes) for item in generation.sentences] == [
        ("Good.", YES, ""),
        (FOUND, YES, "facts"),
        ("Cc.", YES, ""),
    ]
    quoted = generation.sentences[1]
    assert (quoted.source_ids, quoted.removed, quoted.attempts) == (("facts",), ("Aa.", "Ab."), 3)
    assert generation.sources["facts"] == FACTS
    assert reasons(generation) == ["refuted", "quote"]
    assert generation.stats.tokens_copied == len(FOUND)
    check = [event.data for event in generation.trace if event.kind == "verification"][-2]
    assert (check["text"], check["verdict"], check["evidence"][0]["excerpt"]) == (FOUND, "supported", FOUND)
    shown = {event.data["text"]: event.data.get("quotes") for event in events if event.kind == "sentence"}
    assert shown == {"Good.": None, FOUND: "facts", "Cc.": None}
    assert [event.data["id"] for event in events if event.kind == "quote"] == ["facts"]
    assert [sentence.quotes for sentence in ewe_result([generation]).sentences] == ["", "facts", ""]


def ending(*texts: str) -> Any:
    """As `words`, but what follows something else than the text ends."""
    script = words(*texts)

    def next_character(context: str, units: tuple[str, ...]) -> str:
        return "\x00" if FOUND in context else script(context, units)

    return next_character


def test_unsupported_sentences_may_be_replaced_too() -> None:
    generation = remembering(config(rewrite_when="unsupported"), ending("Aa."), Answers({"Aa.": [MAYBE]}))
    assert generation.text == FOUND
    assert reasons(generation) == ["unsupported", "quote"]


def test_without_a_sentence_to_quote_it_is_left_out() -> None:
    other = Passage("other", "Each hill in the far land is a big old ice hill.")
    script = words("Good. Aa. Bb.", "Good. Ab. Bb.", "Good. Dd.")
    generation, _ = write(config(), script, Answers({"Aa.": [NO], "Ab.": [NO]}, other))
    assert "drop" in reasons(generation)
    assert not any(sentence.quotes for sentence in generation.sentences)


@pytest.mark.parametrize(
    ("question", "places", "rewritten", "then"),
    [
        ("Tell me about Dia Bee", 10, "unsupported", "auto"),
        ("When was Dia Bee found?", 10, "refuted", "auto"),
        ("Tell me about Dia Bee", None, "refuted", "keep_best"),
    ],
)
def test_only_overviews_are_held_to_the_passages_in_their_prompt(
    question: str, places: int | None, rewritten: str, then: str
) -> None:
    answer: Any = SimpleNamespace(question=question, prompt_places=places)
    chosen = settled(FeedbackConfig(), answer)
    assert (chosen.rewrite_when, chosen.on_exhausted) == (rewritten, then)
    own = settled(FeedbackConfig(rewrite_when="refuted", on_exhausted="flag"), answer)
    assert (own.rewrite_when, own.on_exhausted) == ("refuted", "flag")


def test_an_overview_keeps_the_best_wording_where_nothing_can_be_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_ewe, "settled", lambda feedback, answer: feedback)
    script = words("Good. Aa. Bb.", "Good. Ab. Bb.")
    other = Passage("other", "Each hill in the far land is a big old ice hill.")
    settings = config(rewrite_when="unsupported", on_exhausted="auto")
    generation, _ = write(settings, script, Answers({"Aa.": [MAYBE], "Ab.": [NO]}, other))
    assert generation.text.startswith("Good. Aa.")
    quoting, _ = write(settings, ending("Good. Aa.", "Good. Ab."), refuting("Aa.", "Ab."))
    assert quoting.text == f"Good. {FOUND}"


def test_nothing_is_quoted_twice() -> None:
    script = words("Aa. Bb.", "Ab. Bb.")

    def follow(context: str, units: tuple[str, ...]) -> str:
        written_ = context[context.rindex(":") + 1 :].partition(FOUND)[2]
        return " Aa. Bb."[len(written_)] if FOUND in context else script(context, units)

    generation, _ = write(config(max_attempts=1), follow, refuting("Aa."))
    assert generation.text.rstrip() == FOUND
    assert reasons(generation) == ["quote", "drop", "drop"]


class Told(Answers):
    """A verifier that finds no claim in some sentences, for a reason."""

    def __init__(self, without: dict[str, str], verdicts: dict[str, list[Verdict]]) -> None:
        super().__init__(verdicts, FACTS)
        self._without = without

    def _judge(self, sentence: str) -> VerificationResult:
        reason = self._without.get(sentence)
        return VerificationResult(reason=reason) if reason else super()._judge(sentence)


@pytest.mark.parametrize(
    ("rewrite_when", "verdict", "text"),
    [("unsupported", MAYBE, f"Good. {FOUND}"), ("refuted", NO, "Good. Ab.")],
)
def test_a_wording_that_states_nothing_is_no_better_than_an_unsupported_one(
    rewrite_when: str, verdict: Verdict, text: str
) -> None:
    verifier = Told({"Ab.": "abstention", "Good.": "greeting"}, {"Aa.": [verdict]})

    def once(context: str, units: tuple[str, ...]) -> str:
        is_judged = any(request.sentence == "Aa." for request in verifier.seen)
        script = "Good. Ab.\x00" if is_judged else "Good. Aa.\x00"
        return "\x00" if FOUND in context else script[len(context[context.rindex(":") + 1 :])]

    assert remembering(config(rewrite_when=rewrite_when), once, verifier).text == text


def test_a_quotation_follows_where_a_text_goes_in_circles_but_none_follows_another() -> None:
    def circles(context: str, units: tuple[str, ...]) -> str:
        text = context[context.rindex(":") + 1 :].rpartition(FOUND)[2]
        return " Aa. Aa.\x00"[len(text)]

    generation = remembering(config(), circles, Told({"Aa.": REPEATS}, {}))
    assert [sentence.text for sentence in generation.sentences] == ["Aa.", FOUND]
    assert reasons(generation) == ["drop", "quote", "drop", "drop"]


def test_a_quotation_follows_where_the_first_sentence_goes_in_circles() -> None:
    def circles(context: str, units: tuple[str, ...]) -> str:
        text = context[context.rindex(":") + 1 :]
        return "\x00" if FOUND in text else "Ab "[len(text) % 3]

    generation = remembering(config(), circles, Answers({}))
    assert (generation.error, generation.text.strip()) == ("", FOUND)


@pytest.mark.parametrize(
    ("prompt", "script", "stop", "text"),
    [
        (PROMPT, "Good.\x00", (), f"Good. {FOUND}"),
        (PROMPT, "Good. \x00", (), f"Good. {FOUND}"),
        (PROMPT, "Good. Aa. Bb. Ab.\x00", (), "Good. Aa. Bb. Ab."),
        (PROMPT, "Good\x00", (), "Good"),
        (PROMPT, "Good. Ab. Aa", ("Aa",), "Good. Ab. "),
        (PROMPT, "Good.\x00", (". A",), "Good."),
        (PROMPT, "1. Aa.\n2. Bb.\x00", (), "1. Aa.\n2. Bb."),
        ("Tell me in one sentence about Dia Bee:", "Good.\x00", (), "Good."),
        ("When was Dia Bee found:", "Good.\x00", (), "Good."),
    ],
)
@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
def test_an_overview_that_ends_too_early_goes_on_behind_a_quotation(
    monkeypatch: pytest.MonkeyPatch, mode: str, prompt: str, script: str, stop: tuple[str, ...], text: str
) -> None:
    monkeypatch.setattr(replacements, "_is_held", lambda answer: asks_for_all(answer.question))
    bench = Bench(config(mode=mode), None, Answers({}), lambda context, units: following(script, context))
    bench.add("a", prompt, SamplingParams(max_tokens=120, stop=stop), documents=[FACTS])
    generation = bench.run()["a", 0]
    assert generation.text == text
    assert [sentence.text for sentence in generation.sentences if sentence.quotes] == [FOUND] * (FOUND in text)
    assert ALPHABET.index("\x00") not in generation.token_ids[:-1]


def following(script: str, context: str) -> str:
    """The next character of a text that ends behind a quotation."""
    return "\x00" if FOUND in context else script[len(context[context.rindex(":") + 1 :])]


@pytest.mark.parametrize(
    ("on_exhausted", "text", "why"),
    [("quote", f"Good. {FOUND}", ["drop", "quote"]), ("keep_best", "Good. ", ["drop", "drop"])],
)
def test_a_sentence_that_never_ends_but_repeats_itself_gives_way(on_exhausted: str, text: str, why: list[str]) -> None:
    script = "Good. Ab" + " cd cd" * 40
    generation = remembering(
        config(on_exhausted=on_exhausted), lambda context, units: following(script, context), Answers({})
    )
    assert generation.text == text
    assert reasons(generation) == why


@pytest.mark.parametrize(("text", "goes_on"), [("```\nab ab ab", True), ("```\nab\n```\nab ab ab", False)])
def test_code_that_repeats_itself_goes_on(text: str, goes_on: bool) -> None:
    answer: Any = SimpleNamespace(
        sentences=[],
        text=SimpleNamespace(text=text),
        code_blocks=code_blocks(text),
        has_grammar=False,
        is_settled=True,
        goes_in_circles=True,
        vary=lambda sentence: None,
    )
    assert (list(replacements.leave_circle(answer, FeedbackConfig(), set())) == []) is goes_on


@pytest.mark.parametrize(
    ("params", "quotes"),
    [
        (SamplingParams(max_tokens=len(FOUND)), True),
        (SamplingParams(max_tokens=len(FOUND) - 1), False),
        (SamplingParams(max_tokens=120, stop=("old ice",)), False),
        (SamplingParams(max_tokens=120, stop=("s. Dd",)), False),
    ],
)
def test_a_quotation_has_room_and_ends_no_text(params: SamplingParams, quotes: bool) -> None:
    generation, _ = write(config(max_attempts=1), ending("Aa."), refuting("Aa."), params)
    assert [sentence.quotes for sentence in generation.sentences] == (["facts"] if quotes else [])
    assert len(generation.token_ids) <= params.max_tokens


def test_the_retrieved_passages_in_memory_may_be_quoted() -> None:
    bench = Bench(config(max_attempts=1), None, Answers({"Aa.": [NO]}, Passage("e", "no")), ending("Aa.", "Aa."))
    bench.add("a", PROMPT, SamplingParams(max_tokens=60), documents=[FACTS])
    assert bench.run()["a", 0].text == FOUND


# --- at any seam, with any tokenizer


@pytest.mark.parametrize("make", [byte_level, sentencepiece_like])
@given(
    before=st.sampled_from(["", "The end.", "It flows past the sea. The end.", "東京は日本の首都です。"]),
    lead=st.sampled_from(["", " ", "\n\n", ". "]),
    text=st.sampled_from(["The river was named in 1897.", "Sørland is «far» from the café.", "東京 is a 🌊."]),
)
def test_tokens_of_a_quotation_give_its_very_words(make: Any, before: str, lead: str, text: str) -> None:
    tokenizer = make()

    def encode(part: str) -> list[int]:
        return list(tokenizer(part, add_special_tokens=False)["input_ids"])

    ids = encode(f"Tell me. {before}")
    found = written(encode, tokenizer, ids, lead, Quotation(Passage("p", text), text))
    detokenizer = Detokenizer(tokenizer, ids)
    for token_id in found:
        detokenizer.append(token_id)
    assert detokenizer.text == lead + text


def test_a_text_with_a_control_token_is_not_quoted() -> None:
    tokenizer = byte_level()
    ids = written(lambda text: tokenizer(text)["input_ids"], tokenizer, [], "", Quotation(Passage("p", ""), "A<eos>."))
    assert ids == []


# --- with everything else that goes on


def chatter(context: str, units: tuple[str, ...]) -> str:
    choice = number(context, units)
    if context.endswith("."):
        return "\x00" if choice % 5 == 0 else " "
    if context.endswith(". "):
        return "ABCDEFGHIJ"[choice % 10]
    return "." if choice % 6 == 0 and context[-1] != " " else "abcdefghij "[choice % 11]


class Facts:
    """Refutes most sentences, with passages that may be quoted, each with other words."""

    def __init__(self, salt: int) -> None:
        self._salt = salt

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        return [self._judge(request.sentence) for request in requests]

    def _judge(self, sentence: str) -> VerificationResult:
        chance = number(self._salt, sentence)
        verdict = YES if chance % 3 == 0 else NO
        stuff = " ".join("".join("abcdefghij"[int(digit)] for digit in f"{chance + n:04d}"[-4:]) for n in range(6))
        passage = Passage(f"e{chance}", f"Dia Bee had {stuff} once.", "Dia Bee")
        claim = Claim(sentence, 0, len(sentence), verdict, 1.0, (passage.id,))
        return VerificationResult((claim,), (Evidence(passage, verdict, 1.0),))


@examples(5, 15)
@given(
    salt=st.integers(0, 10**6),
    mode=st.sampled_from(["blocking", "optimistic"]),
    ahead=st.booleans(),
    stop=st.sampled_from([(), (". A",), ("abc", "e.")]),
    held=st.booleans(),
    schedule=st.lists(st.integers(0, 3), max_size=40),
)
def test_streams_keep_their_promises_and_blocks_come_back(
    salt: int, mode: str, ahead: bool, stop: tuple[str, ...], held: bool, schedule: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacements, "_is_held", lambda answer: held)
        _keep_promises(salt, mode, ahead, stop, schedule)


def _keep_promises(salt: int, mode: str, ahead: bool, stop: tuple[str, ...], schedule: list[int]) -> None:
    values = config(mode=mode).model_dump() | {"scheduler": {"async_scheduling": ahead}}
    bench = GatedBench(Config.from_mapping(values), Library(), Facts(salt), chatter, num_blocks=150)
    bench.runner.strength = 6.0
    readers = [Reader(), Reader()]
    for name, reader in enumerate(readers):
        params = SamplingParams(max_tokens=150, temperature=0.8, seed=salt, stop=stop)
        bench.add(str(name), PROMPT, params, listener=reader)
    finished = bench.run_late(schedule)
    for name, reader in enumerate(readers):
        generation = finished[str(name), 0]
        assert reader.text == generation.text
        assert len(generation.token_ids) == len(generation.logprobs) <= 150
        for sentence in generation.sentences:
            assert generation.text[sentence.start : sentence.end] == sentence.text
            assert not sentence.quotes or sentence.text == generation.sources[sentence.quotes].text
    assert all(char in ALPHABET for char in finished["0", 0].text)


FALKIRK = Passage("falkirk", "Falkirk was a battle in the far hills.", "Falkirk")


class Shelf:
    """A retriever that finds FACTS with the question, and FALKIRK with any sentence of the answer."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        return [[ScoredPassage(FALKIRK if "." in query else FACTS, 1.0)] for query in queries]


@pytest.mark.parametrize(("text", "finds"), [("Aa. Bb. Cc.", False), ("Aa. Falkirk. Cc.", True)])
def test_later_looks_bring_what_is_about_the_question_or_named_in_the_text(text: str, finds: bool) -> None:
    bench = Bench(config(retrieve_every=1), Shelf(), Answers({}), words(text))
    bench.add("a", PROMPT, SamplingParams(max_tokens=40))
    trace = bench.run()["a", 0].trace
    units = [event.data["passage"]["id"] for event in trace if event.kind == "refresh"]
    assert units == (["facts", "falkirk"] if finds else ["facts"])
