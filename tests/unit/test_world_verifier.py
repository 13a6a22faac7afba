"""The built-in world's verifier: every sentence of the world against passages of the world, fact by fact."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ewe.evaluation.world.claims import claims_of, people_named
from ewe.evaluation.world.people import EntityPool, wrong_value
from ewe.evaluation.world.verifier import WorldVerifier
from ewe.evaluation.world.wording import catalogue
from ewe.evaluation.world.world import World
from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage, ScoredPassage, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import Verifier
from ewe.verification.combination import UNSUPPORTED
from ewe.verification.feedback import PassageFeedback

SUPPORTED, REFUTED, INCONCLUSIVE = Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE
LURAN = "Who was Luran Holmer?"


@pytest.fixture(scope="module")
def world() -> World:
    return World.generate(11, 20)


@pytest.fixture(scope="module")
def complete(world: World) -> WorldVerifier:
    return WorldVerifier(BM25Retriever(world.passages), assume_complete=True)


def ask(verifier: WorldVerifier, sentence: str, prompt: str = LURAN, preceding: str = "") -> VerificationResult:
    [result] = verifier.verify([VerificationRequest(prompt, preceding, sentence)])
    return result


def verdict(sentence: str, *passages: Passage, weighting: bool = False, closed: bool = False) -> Verdict:
    return ask(WorldVerifier(BM25Retriever(passages), 16, weighting, closed), sentence).verdict


def told(text: str, source: str = "", veracity: float = 1.0) -> Passage:
    return Passage(f"{source}: {text}", text, "Luran Holmer", source, veracity=veracity)


@pytest.mark.parametrize("phrasing", catalogue(), ids=lambda phrasing: phrasing.text)
def test_every_sentence_is_judged_right(world: World, complete: WorldVerifier, phrasing) -> None:
    rng, pool = Random(phrasing.text), EntityPool.draw(Random(3), "test", 20)
    for person in rng.sample(list(world.people.values()), 2):
        prompt = f"Tell me about {person.name}."
        for reference in ("full", "pronoun") if "a" in phrasing.uses else ("full",):
            sentence = phrasing.fill(person, reference).text
            assert ask(complete, sentence, prompt).verdict is SUPPORTED, sentence
        for slot in phrasing.slots:
            liar = person.with_value(slot, wrong_value(rng, person, slot, pool))
            sentence = phrasing.fill(liar).text
            result = ask(complete, sentence, prompt)
            assert result.verdict is REFUTED, sentence
            assert any(piece.stance is REFUTED for piece in result.evidence)


def test_a_claim_stands_alone_and_has_its_place() -> None:
    sentence = (
        "By contrast, in later years they lived here. She won the Salis Award in 1879 and the Grenax Medal in 1893."
    )
    claims = claims_of(VerificationRequest(LURAN, "", sentence))
    assert [one.claim.text for one in claims] == [
        "Luran Holmer won the Salis Award in 1879.",
        "Luran Holmer won the Grenax Medal in 1893.",
    ]
    spans = [sentence[one.claim.start : one.claim.end] for one in claims]
    assert spans == ["Salis Award in 1879", "Grenax Medal in 1893"]
    [born, place] = claims_of(VerificationRequest(LURAN, "", "Born in Lavport in 1841, he became a gardener."))[:2]
    assert (born.claim.text, place.claim.text) == (
        "Luran Holmer was born in Lavport.",
        "Luran Holmer was born in 1841.",
    )


def test_a_pronoun_means_the_person_named_last_and_nobody_without_one() -> None:
    passages = [told("Luran Holmer died in 1901."), told("Calora Falter died in 1855.")]
    verifier = WorldVerifier(BM25Retriever(passages))
    assert ask(verifier, "She died in 1901.").verdict is SUPPORTED
    assert ask(verifier, "She died in 1855.", preceding="Calora Falter lived in Lavport. ").verdict is SUPPORTED
    assert ask(verifier, "Holmer died in 1901.", preceding="Calora Falter lived in Lavport. ").verdict is SUPPORTED
    assert ask(verifier, "She died in 1901.", prompt="Who was it?").verdict is Verdict.NOT_CHECKED


def test_people_are_told_from_other_names() -> None:
    asked = "In which year did Luran Holmer, not Calora Falter, win the Salis Award or write The Golden Stone?"
    assert people_named(asked) == ("Luran Holmer", "Calora Falter")
    assert people_named("Is Luran Holmer of Lavport, Tell Me, a botanist?") == ("Luran Holmer",)


@pytest.mark.parametrize(
    ("sentence", "open_world", "closed_world"),
    [
        ("Luran Holmer was born in Lavport.", SUPPORTED, SUPPORTED),
        ("Luran Holmer was born in Oldwick.", REFUTED, REFUTED),
        ("Luran Holmer died in 1901.", INCONCLUSIVE, REFUTED),
        ("Luran Holmer wrote The Pale Door.", INCONCLUSIVE, REFUTED),
        ("Luran Holmer won the Salis Award in 1879.", INCONCLUSIVE, REFUTED),
        ("Luran Holmer won the Orax Medal in 1880.", REFUTED, REFUTED),
        ("Luran Holmer won the Tent Ribbon.", REFUTED, REFUTED),
        ("Calora Falter was born in Lavport.", INCONCLUSIVE, REFUTED),
        ("Nobody liked soup.", Verdict.NOT_CHECKED, Verdict.NOT_CHECKED),
        ("", Verdict.NOT_CHECKED, Verdict.NOT_CHECKED),
    ],
)
def test_what_is_not_mentioned_is_refuted_in_a_closed_world_only(
    sentence: str, open_world: Verdict, closed_world: Verdict
) -> None:
    text = "Luran Holmer was born in Lavport. She wrote The Red Hill. Luran Holmer won the Orax Medal in 1879."
    passages = [told(text, "a"), told("Luran Holmer won the Grenax Medal. She won the Salis Award.", "b")]
    assert verdict(sentence, *passages) is open_world
    assert verdict(sentence, *passages, closed=True) is closed_world


def test_a_closed_world_says_what_it_has_instead() -> None:
    verifier = WorldVerifier(BM25Retriever([told("Luran Holmer wrote The Red Hill.")]), assume_complete=True)
    result = ask(verifier, "She wrote The Pale Door.")
    assert [piece.excerpt for piece in result.evidence] == ["Luran Holmer wrote The Red Hill."]
    assert [unit.text for unit in PassageFeedback().build(result)] == ["Luran Holmer wrote The Red Hill."]


BORN, OTHERWISE = "Luran Holmer was born in 1841.", "Luran Holmer was born in 1850."


def test_sources_that_disagree_leave_it_open_unless_there_are_more_on_one_side() -> None:
    one, other = told(BORN, "a"), told(OTHERWISE, "b")
    assert verdict(BORN, one, other, closed=True) is INCONCLUSIVE
    assert verdict(BORN, one, other, told(OTHERWISE, "c")) is REFUTED
    assert verdict(BORN, one, other, told(BORN, "c")) is SUPPORTED
    assert verdict(BORN, one, other, told("Born in 1850, Luran Holmer studied at Ulm College.", "b")) is INCONCLUSIVE


def test_credible_sources_prevail_when_veracity_counts() -> None:
    liars = [told(OTHERWISE, name, veracity=0.3) for name in ("b", "c", "d")]
    credible = told(BORN, "a", veracity=0.9)
    assert verdict(BORN, credible, *liars, weighting=True) is SUPPORTED
    assert verdict(BORN, credible, *liars) is REFUTED
    assert verdict(OTHERWISE, *liars, weighting=True) is INCONCLUSIVE
    assert verdict(OTHERWISE, *liars, weighting=True, closed=True) is REFUTED
    assert verdict(OTHERWISE, told(BORN, "a", veracity=0.95), told(OTHERWISE, "e", 0.8), weighting=True) is REFUTED
    assert verdict(BORN, told(BORN, "a", veracity=0.0)) is INCONCLUSIVE


def test_a_batch_calls_the_retriever_once_and_keeps_the_order() -> None:
    class Counting(BM25Retriever):
        calls = 0

        def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
            self.calls += 1
            return super().retrieve(queries, top_k)

    retriever = Counting([told(BORN)])
    verifier = WorldVerifier(retriever)
    assert isinstance(verifier, Verifier)
    texts = [OTHERWISE, "It is lovely.", BORN, "She died in 1901."]
    results = verifier.verify([VerificationRequest(LURAN, "", text) for text in texts])
    assert [result.verdict for result in results] == [REFUTED, Verdict.NOT_CHECKED, SUPPORTED, INCONCLUSIVE]
    assert retriever.calls == 1
    assert verifier.verify([]) == []


WORDS = [
    "She",
    "was",
    "born",
    "in",
    "1841",
    "Lavport",
    ",",
    "Luran",
    "Holmer",
    "won",
    "the",
    "Salis",
    "Award",
    ".",
    "?",
]
TEXTS = st.one_of(
    st.lists(st.sampled_from([*WORDS, "🙂", "\n", "'s"]), max_size=25).map(" ".join), st.text(max_size=60)
)


@examples(15, 50)
@given(TEXTS, TEXTS, TEXTS, TEXTS, st.booleans())
def test_odd_texts_never_raise(prompt: str, preceding: str, sentence: str, evidence: str, closed: bool) -> None:
    passages = [Passage("a", evidence, title=prompt), Passage("b", sentence, title=preceding, veracity=0.4)]
    verifier = WorldVerifier(BM25Retriever(passages), veracity_weighting=closed, assume_complete=closed)
    result = ask(verifier, sentence, prompt, preceding)
    assert all(0 <= claim.start < claim.end <= len(sentence) for claim in result.claims)
    PassageFeedback(("refuting", "supporting", "instruction")).build(result)


def test_long_texts_are_read_in_linear_work() -> None:
    texts = ["word " * 2000, "Paris " * 2000, "a" * 10_000, "in 1901, " * 1200, "🙂" * 10_000, "Ab " * 5000 + "."]
    verifier = WorldVerifier(BM25Retriever([Passage(str(i), text) for i, text in enumerate(texts)]))
    assert len(verifier.verify([VerificationRequest(text, text, text) for text in texts])) == len(texts)


def test_a_requests_own_closed_world_comes_first() -> None:
    verifier = WorldVerifier(BM25Retriever([told("Luran Holmer wrote The Red Hill.")]))
    sentence = "Luran Holmer was born in Orvane in 1931."
    requests = [VerificationRequest("", "", sentence, closed_world=closed) for closed in (None, True, False)]
    results = verifier.verify(requests)
    assert [result.verdict for result in results] == [INCONCLUSIVE, Verdict.REFUTED, INCONCLUSIVE]
    assert [result.claims[0].reason for result in results] == ["", UNSUPPORTED, ""]
