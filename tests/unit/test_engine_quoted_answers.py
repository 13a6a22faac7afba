"""The policy asks for sentences that answer the question where one may stand in the place of what fails."""

import pytest
from engine_parts import words
from mock_engine import Bench

from ewe.config import Config
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationResult
from ewe.types.sampling_params import SamplingParams

FOUND = "Each cave of Dia Bee in the far hills has been dug by a big old giant."
FACTS = Passage("facts", f"Cold air. {FOUND} And so on.", "Dia Bee", "books")
ASKED, OVERVIEW = "Who dug the cave of Dia Bee:", "Tell me about Dia Bee:"


class Checks:
    """Refutes what begins with an "A", leaves open what begins with a "B", and says what answers the question."""

    def __init__(self):
        self.requests = []

    def verify(self, requests):
        self.requests += requests
        return [self._result(one) for one in requests]

    def _result(self, request):
        verdicts = {"A": Verdict.REFUTED, "B": Verdict.INCONCLUSIVE}
        verdict = verdicts.get(request.sentence[:1], Verdict.SUPPORTED)
        answers = (Evidence(FACTS, Verdict.INCONCLUSIVE, 0.9, FOUND),) if request.wants_answers else ()
        return VerificationResult((Claim(request.sentence, 0, len(request.sentence), verdict, 1.0),), answers=answers)


def write(prompt, *texts, **feedback):
    values = {"verify_every": 1, "max_attempts": 2, "on_exhausted": "quote", **feedback}
    config = Config.from_mapping({"memory": {"unit_tokens": 24}, "feedback": values, "cache": {"block_size": 4}})
    verifier, script = Checks(), words(*texts)

    def follow(context, units):
        return "\x00" if FOUND in context else script(context, units)

    bench = Bench(config, None, verifier, follow)
    bench.add("a", prompt, SamplingParams(max_tokens=120))
    return bench.run()["a", 0], verifier.requests


@pytest.mark.parametrize("wordings", [1, 2])
def test_what_answers_the_question_stands_in_the_place_of_what_fails(wordings):
    generation, _ = write(ASKED, "Aa.", "Ab.", "Ac.", wordings=wordings)
    assert generation.text == FOUND
    assert [one.quotes for one in generation.sentences] == ["facts"]


@pytest.mark.parametrize(
    ("prompt", "texts", "quoted"),
    [
        (ASKED, ["Bo dug it."], True),
        (ASKED, ["Big old giants did."], False),
        (ASKED, ["Good. Bo dug it."], False),
        (OVERVIEW, ["Bo dug it."], False),
    ],
    ids=["otherwise", "alike", "second", "overview"],
)
def test_a_first_sentence_that_nothing_bears_out_gives_way_to_what_answers_otherwise(prompt, texts, quoted):
    generation, _ = write(prompt, *texts)
    assert generation.text == (FOUND if quoted else texts[0])
    assert generation.sentences[0].removed == (("Bo dug it.",) if quoted else ())


def test_it_stands_where_the_setting_keeps_the_best_wording():
    assert write(ASKED, "Bo dug it.", on_exhausted="keep_best")[0].text == "Bo dug it."


@pytest.mark.parametrize(
    ("prompt", "feedback", "asks"),
    [(ASKED, {}, True), (ASKED, {"on_exhausted": "drop"}, False), (OVERVIEW, {}, False)],
)
def test_answers_are_asked_for_only_where_they_may_be_quoted(prompt, feedback, asks):
    _, requests = write(prompt, "Good.", **feedback)
    assert requests
    assert {one.wants_answers for one in requests} == {asks}
