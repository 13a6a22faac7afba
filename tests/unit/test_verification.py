"""The verifier on ordinary English about real things; nothing here comes from the built-in world."""

import pytest

from ewe.protocols import Verifier
from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage, Verdict, VerificationRequest
from ewe.verification.value_comparison.verifier import ValueVerifier

CURIE = "Tell me about Marie Curie."
PASSAGES = [
    Passage(
        "curie",
        "Marie Curie was born on 7 November 1867 in Warsaw, Poland. She studied physics at the University of Paris and "
        "won the Nobel Prize in Physics in 1903 with Pierre Curie. In 1911, she won the Nobel Prize in Chemistry. Her "
        "teacher was Gabriel Lippmann. She died in 1934 in Passy.",
        title="Marie Curie",
    ),
    Passage(
        "nobel",
        "The Nobel Prize was established in 1895 by Alfred Nobel. It was awarded to Henri Dunant in 1901 and to Linus "
        "Pauling in 1954.",
        title="Nobel Prize",
    ),
    Passage(
        "austen",
        "Jane Austen (16 December 1775 – 18 July 1817) was an English novelist. She wrote Emma (1815), Persuasion "
        "(1817) and Lady Susan. Pride and Prejudice was published in 1813. She lived in Chawton until her death.",
        title="Jane Austen",
    ),
    Passage(
        "tuebingen",
        "The University of Tübingen, founded in 1477 by Count Eberhard, is located in the town of Tübingen. The "
        "university has 28,000 students. Johannes Kepler was among them.",
        title="University of Tübingen",
    ),
    Passage(
        "eiffel",
        "The Eiffel Tower is 330 metres tall. It was built by Gustave Eiffel, who was born in Dijon, between 1887 and "
        "1889 and opened on 31 March 1889.",
        title="Eiffel Tower",
    ),
    Passage("seine", "The Seine flows through Paris. It is 777 kilometres long.", title="Seine"),
]  # fmt: skip
OPEN = ValueVerifier(BM25Retriever(PASSAGES))
COMPLETE = ValueVerifier(BM25Retriever(PASSAGES), assume_complete=True)


def verdict(verifier, sentence, prompt="", preceding=""):
    return verifier.verify([VerificationRequest(prompt, preceding, sentence)])[0].verdict


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        (CURIE, "She was born in Warsaw in 1867."),
        (CURIE, "Born in Warsaw, Marie Curie studied physics at the University of Paris."),
        (CURIE, "Curie, who was born in 1867, died in 1934."),
        (CURIE, "She won the Nobel Prize in 1911."),
        (CURIE, "She was awarded the Nobel Prize in 1903."),
        (CURIE, "In 1903, the Nobel Prize was awarded to Marie Curie."),
        (CURIE, "She was taught by Gabriel Lippmann."),
        (CURIE, "Gabriel Lippmann was the teacher of Marie Curie."),
        (CURIE, "The birth of Marie Curie took place in Poland."),
        ("", "Jane Austen, an English novelist, was born in 1775."),
        ("", "Emma, a novel by Jane Austen, was published in 1815."),
        ("", "The author of Persuasion is Jane Austen."),
        ("", "Jane Austen was the author of Lady Susan."),
        ("", "The University of Tübingen was founded in 1477."),
        ("", "Count Eberhard founded the University of Tübingen."),
        ("", "The Eiffel Tower is 330 metres tall."),
        ("", "The tower was built by Gustave Eiffel."),
        ("", "Linus Pauling won the Nobel Prize in 1954."),
        ("", "The Seine is about 780 kilometres long."),
        ("", "Warsaw was the birthplace of Marie Curie."),
        ("", "Among those who studied at the University of Paris was Marie Curie."),
        ("", "The works of Jane Austen are Emma and Persuasion."),
    ],
)
def test_true_sentences_are_supported(prompt, sentence):
    if sentence.startswith("The tower"):
        prompt = "Tell me about the Eiffel Tower."
    assert verdict(OPEN, sentence, prompt) is Verdict.SUPPORTED
    assert verdict(COMPLETE, sentence, prompt) is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        (CURIE, "She was born in Krakow."),
        (CURIE, "Marie Curie was born in Warsaw in 1868."),
        (CURIE, "She was born on 8 November 1867."),
        (CURIE, "Curie, who was born in Krakow, died in 1934."),
        (CURIE, "She died in Paris."),
        (CURIE, "She won the Nobel Prize in 1921."),
        (CURIE, "The birth of Marie Curie took place in 1869."),
        (CURIE, "Marie Curie was not born in Warsaw."),
        ("", "Emma was published in 1820."),
        ("", "Emma was written by Marie Curie."),
        ("", "The author of Persuasion is Marie Curie."),
        ("", "Marie Curie wrote Persuasion."),
        ("", "Jane Austen was born in 1776."),
        ("", "The University of Tübingen was founded in 1480."),
        ("", "The University of Tübingen was founded by Marie Curie."),
        ("", "The Eiffel Tower is 250 metres tall."),
        ("", "The Seine is 900 kilometres long."),
        ("", "Alfred Nobel established the Nobel Prize in 1901."),
        ("", "The Eiffel Tower was built by Alfred Nobel."),
    ],
)
def test_a_wrong_value_in_a_slot_that_holds_one_is_refuted(prompt, sentence):
    assert verdict(OPEN, sentence, prompt) is Verdict.REFUTED


@pytest.mark.parametrize(
    "sentence",
    [
        "She won the Copley Medal in 1911.",
        "She studied at the University of Krakow.",
        "Her teacher was Henri Becquerel.",
        "Jane Austen wrote Mansfield Park.",
        "Jane Austen lived in Bath.",
    ],
)
def test_another_value_in_a_slot_that_may_hold_several_refutes_only_if_the_collection_is_complete(sentence):
    assert verdict(OPEN, sentence, CURIE) is Verdict.INCONCLUSIVE
    assert verdict(COMPLETE, sentence, CURIE) is Verdict.REFUTED


@pytest.mark.parametrize(
    "sentence",
    [
        "Marie Curie was born in Europe.",  # a town may lie on the continent
        "Marie Curie was born around 1870.",
        "She visited London in 1903.",  # nothing is known of it
        "Marie Curie only won the Nobel Prize in 1911.",
        "Marie Curie was not born in Krakow.",
        "Pierre Curie was born in 1859.",
        "The Eiffel Tower has 1,665 steps.",
        "The Nobel Prize was awarded in 1921.",
        "Johannes Kepler was born in Weil der Stadt.",
        "The author of Emma is English.",
    ],
)
def test_what_evidence_does_not_settle_is_inconclusive(sentence):
    assert verdict(OPEN, sentence, CURIE) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "sentence", ["It is lovely.", "Was she born in Paris?", "Here is what I know.", "", "!!!", "I hope this helps."]
)
def test_what_states_nothing_is_not_checked(sentence):
    assert verdict(COMPLETE, sentence) is Verdict.NOT_CHECKED


def test_a_pronoun_means_the_subject_at_hand():
    sentence = "She died in 1817."
    assert verdict(OPEN, sentence, CURIE, "Marie Curie was born in 1867. ") is Verdict.REFUTED
    assert verdict(OPEN, sentence, CURIE, "Jane Austen was born in 1775. ") is Verdict.SUPPORTED


def test_the_claims_of_a_sentence_are_judged_one_by_one():
    request = VerificationRequest(CURIE, "", "She was born in Krakow in 1867 and died in 1934.")
    born, died = OPEN.verify([request])[0].claims
    assert (born.verdict, died.verdict) == (Verdict.REFUTED, Verdict.SUPPORTED)
    assert (born.text, died.text) == ("Marie Curie was born in Krakow in 1867", "Marie Curie died in 1934")
    assert request.sentence[born.start : born.end] == "She was born in Krakow in 1867"
    assert born.evidence_ids == ("curie",)


def test_evidence_names_the_deciding_sentence():
    result = OPEN.verify([VerificationRequest(CURIE, "", "She died in Paris.")])[0]
    [evidence] = result.evidence
    assert (evidence.passage.id, evidence.stance) == ("curie", Verdict.REFUTED)
    assert evidence.excerpt == "She died in 1934 in Passy."
    assert 0 < evidence.score <= 1


def source(name, year, veracity=1.0):
    text = f"The bridge of Arta was built in {year}. It is long."
    return Passage(name, text, title="Bridge of Arta", source=name, veracity=veracity)


def judge(passages, weighting):
    verifier = ValueVerifier(BM25Retriever(passages), veracity_weighting=weighting)
    return verdict(verifier, "The Bridge of Arta was built in 1606.")


def test_sources_of_equal_weight_that_disagree_leave_it_open():
    assert judge([source("a", 1606), source("b", 1612)], weighting=False) is Verdict.INCONCLUSIVE
    assert judge([source("a", 1606), source("b", 1612), source("c", 1612)], weighting=False) is Verdict.REFUTED
    assert judge([source("a", 1606), source("b", 1606), source("c", 1612)], weighting=False) is Verdict.SUPPORTED


def test_credible_sources_prevail_when_veracity_counts():
    liars = [source(name, 1612, veracity=0.3) for name in ("b", "c", "d")]
    assert judge([source("a", 1606, veracity=0.9), *liars], weighting=True) is Verdict.SUPPORTED
    assert judge([source("a", 1606, veracity=0.9), *liars], weighting=False) is Verdict.REFUTED
    assert judge(liars, weighting=True) is Verdict.INCONCLUSIVE
    assert judge([source("a", 1606, veracity=0.3), source("b", 1612, veracity=0.9)], weighting=True) is Verdict.REFUTED


def test_a_source_that_cannot_be_believed_at_all_is_not_heard():
    assert judge([source("a", 1612, veracity=0.0)], weighting=False) is Verdict.INCONCLUSIVE


def test_copies_of_one_source_count_once():
    copies = [
        Passage(f"b{i}", f"The bridge of Arta was built in 1612. Part {i}.", title="Bridge of Arta", source="b")
        for i in range(3)
    ]
    assert judge([source("a", 1606), *copies], weighting=False) is Verdict.INCONCLUSIVE


def test_a_batch_calls_the_retriever_once_and_keeps_the_order():
    class Counting(BM25Retriever):
        calls = 0

        def retrieve(self, queries, top_k):
            self.calls += 1
            return super().retrieve(queries, top_k)

    retriever = Counting(PASSAGES)
    verifier = ValueVerifier(retriever)
    assert isinstance(verifier, Verifier)
    sentences = ["She died in Paris.", "It is lovely.", "She died in 1934.", "She won the Copley Medal."]
    results = verifier.verify([VerificationRequest(CURIE, "", sentence) for sentence in sentences])
    verdicts = [result.verdict for result in results]
    assert verdicts == [Verdict.REFUTED, Verdict.NOT_CHECKED, Verdict.SUPPORTED, Verdict.INCONCLUSIVE]
    assert retriever.calls == 1
    assert verifier.verify([]) == []


def test_an_excerpt_says_of_whom_it_speaks():
    text = "The Copley Medal is old. Alexander Volta won it in 1794. He died in 1827 in Como."
    verifier = ValueVerifier(BM25Retriever([Passage("copley", text, title="Copley Medal")]))
    [evidence] = verifier.verify([VerificationRequest("", "", "Alexander Volta died in 1830.")])[0].evidence
    assert evidence.excerpt == "Alexander Volta won it in 1794. He died in 1827 in Como."


def test_a_surname_means_the_person_at_hand():
    passages = [
        Passage("m", "Marie Curie was born in 1867.", title="Marie Curie"),
        Passage("i", "Irène Curie was born in 1897.", title="Irène Curie"),
    ]
    verifier = ValueVerifier(BM25Retriever(passages))
    preceding = "Curie studied under Irène Curie. Marie Curie went home. "
    assert verdict(verifier, "Curie was born in 1867.", CURIE, preceding) is Verdict.SUPPORTED


def check(text, sentence, **options):
    return verdict(ValueVerifier(BM25Retriever([Passage("p", text, title="Ada Byron")]), **options), sentence)


def test_the_ends_of_a_period_are_kept_apart():
    text = "Ada Byron taught at the University of Ulm from 1901 to 1910."
    assert check(text, "Ada Byron taught at the University of Ulm until 1910.") is Verdict.SUPPORTED
    assert check(text, "Ada Byron taught at the University of Ulm since 1901.") is Verdict.SUPPORTED
    assert check(text, "Ada Byron taught at the University of Ulm until 1901.") is Verdict.REFUTED


def test_what_evidence_denies_supports_nothing():
    assert check("Ada Byron never won the Copley Medal.", "Ada Byron won the Copley Medal.") is Verdict.INCONCLUSIVE


def test_only_places_contradict_places():
    text = "Ada Byron died in the last days of the Great War."
    assert check(text, "Ada Byron died in Ulm.") is Verdict.INCONCLUSIVE
    assert check("She died in the arms of Jan Holm.", "Ada Byron died in Ulm.") is Verdict.INCONCLUSIVE


def test_sources_that_know_of_several_values_do_not_outvote_the_one_that_states_this_one():
    def told(name, text):
        return Passage(name, text, title="Ada Byron", source=name)

    def judge(*passages):
        return verdict(ValueVerifier(BM25Retriever(passages), assume_complete=True), "Ada Byron wrote Sketch.")

    states = told("a", "Ada Byron wrote Sketch.")
    assert judge(states, told("b", "Ada Byron wrote Notes."), told("c", "Ada Byron wrote Notes.")) is Verdict.REFUTED
    assert (
        judge(states, told("b", "She wrote Notes. She wrote Letters."), told("c", "Ada Byron wrote Notes."))
        is Verdict.SUPPORTED
    )


def test_evidence_with_another_value_is_found_among_many_passages_about_the_subject():
    praise = [
        Passage(str(i), f"Ada Byron was a friend of the Ulm Academy in town {i}.", "Ada Byron") for i in range(60)
    ]
    fact = Passage("fact", "Jan Holm and others and then Ada Byron joined the Holm Society that year.")
    verifier = ValueVerifier(BM25Retriever([*praise, fact]), assume_complete=True)
    [result] = verifier.verify([VerificationRequest("", "", "Ada Byron was a member of the Ulm Academy.")])
    assert [evidence.passage.id for evidence in result.evidence] == ["fact"]


def test_a_subject_behind_its_verb_is_found():
    text = "Among those who studied at Ulm College was Ada Byron, whose teacher was Jan Holm."
    verifier = ValueVerifier(BM25Retriever([Passage("ulm", text, title="Ulm College")]))
    assert verdict(verifier, "Ada Byron studied at Ulm College.") is Verdict.SUPPORTED
    assert verdict(verifier, "Ada Byron studied under Jan Holm.") is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("sentence", "false"),
    [
        ("Ada Byron settled in Bern, where she lived until her death in 1910.", "1911"),
        ("Ada Byron, a Swiss poet, won the Ulm Prize, awarded in 1901.", "1902"),
        ("The Ulm Prize of 1901 was won by Ada Byron.", "1902"),
        ("Ada Byron (1850 – 1910) was a poet by profession.", "1911"),
    ],
)
def test_what_one_sentence_says_of_several_matters_is_held_against_each(sentence, false):
    text = "The profession of Ada Byron was that of a poet. Among those who won the Ulm Prize was Ada Byron, awarded "
    text += "it in 1901. She was born in 1850. Ada Byron, a Swiss poet, lived in Bern. She died in 1910."
    assert check(text, sentence) is Verdict.SUPPORTED
    assert check(text, sentence.replace("1910", false).replace("1901", false)) is Verdict.REFUTED


def test_names_that_have_changed_places_are_not_supported():
    assert check("Ulm Press was founded by Jan Holm.", "Jan Holm was founded by Ulm Press.") is Verdict.INCONCLUSIVE
    assert check("Jan Holm succeeded Ada Byron.", "Ada Byron succeeded Jan Holm.") is Verdict.INCONCLUSIVE
    assert check("Jan Holm succeeded Ada Byron.", "Jan Holm succeeded Ada Byron.") is Verdict.SUPPORTED
    assert check("Jan Holm married Ada Byron.", "Ada Byron married Jan Holm.") is Verdict.SUPPORTED


def test_a_date_behind_two_names_is_of_both():
    text = "Ulm Press was founded by Jan Holm and Ada Byron in 1901."
    for founder in ("Jan Holm", "Ada Byron"):
        assert check(text, f"Ulm Press was founded by {founder} in 1901.") is Verdict.SUPPORTED
    assert check(text, "Ulm Press was founded by Ida Lind.") is Verdict.REFUTED


def test_what_a_person_wrote_is_meant_by_it():
    text = "Ada Byron wrote Emma. It was published in 1815."
    assert check(text, "Emma was published in 1815.") is Verdict.SUPPORTED
    assert check(text, "Emma was published in 1816.") is Verdict.REFUTED


def test_who_teaches_is_not_who_is_taught():
    for text in ("Jan Holm taught Ada Byron in Ulm.", "Ada Byron was taught by Jan Holm."):
        assert check(text, "Ada Byron studied under Jan Holm.") is Verdict.SUPPORTED
        assert check(text, "Jan Holm taught Ada Byron.") is Verdict.SUPPORTED
        assert check(text, "Jan Holm was taught by Ada Byron.") is Verdict.INCONCLUSIVE
    text = "Ada Byron studied at Ulm University under the teacher Jan Berg."
    assert check(text, "Ada Byron studied at Ulm University.") is Verdict.SUPPORTED


def test_a_title_before_a_name_is_not_the_maker():
    text = "Ulm Press was founded by former ARPA director Ida Lind."
    assert check(text, "Ulm Press was founded by Ida Lind.") is Verdict.SUPPORTED
    assert check(text, "Ida Lind was founded by Ulm Press.") is Verdict.INCONCLUSIVE


def test_the_passive_exchanges_who_does_and_who_is_done_to():
    text = "The Broncos defeated the Panthers."
    assert check(text, "The Panthers were defeated by the Broncos.") is Verdict.SUPPORTED
    assert check(text, "The Broncos were defeated by the Panthers.") is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("Jan Holm died before 1850.", "Jan Holm died before 1847."),
        ("Jan Holm died before 1890.", "Jan Holm died before 1820."),
        ("Jan Holm died after 1840.", "Jan Holm died after 1850."),
        ("By 1850 Jan Holm had died.", "By 1846 Jan Holm had died."),
        ("Jan Holm died by 1847.", "Jan Holm died by 1837."),
        ("Jan Holm died after 1840 in Ulm.", "Jan Holm died before 1840 in Ulm."),
        ("Jan Holm died after 1840 and before 1850.", "Jan Holm died after 1850 and before 1860."),
    ],
)
def test_a_claim_that_bounds_a_date_is_settled_by_the_date(true, false):
    text = "Jan Holm died in Ulm in 1847."
    assert check(text, true) is Verdict.SUPPORTED
    assert check(text, false) is Verdict.REFUTED


@pytest.mark.parametrize(
    ("text", "open_claim", "false"),
    [
        ("Ulm Press was founded before 1990.", "Ulm Press was founded in 1985.", "Ulm Press was founded in 1994."),
        ("Ulm Press was founded after 1990.", "Ulm Press was founded in 1994.", "Ulm Press was founded in 1985."),
        ("Ulm Press was founded by 1990.", "Ulm Press was founded in 1990.", "Ulm Press was founded in 1991."),
        ("Ulm Press was founded by 1990.", "Ulm Press was founded after 1985.", "Ulm Press was founded after 1990."),
    ],
)
def test_a_bound_refutes_only_what_lies_outside_it(text, open_claim, false):
    assert check(text, open_claim) is Verdict.INCONCLUSIVE
    assert check(text, false) is Verdict.REFUTED


def test_since_and_until_date_a_period_itself():
    text = "Ada Byron became director of Ulm Press in 1994."
    assert check(text, "Ada Byron has been director of Ulm Press since 1994.") is Verdict.SUPPORTED
    assert check(text, "Ada Byron has been director of Ulm Press since 1990.") is Verdict.REFUTED


@pytest.mark.parametrize(
    ("text", "open_claims", "false_claims"),
    [
        ("until 1860", ("before 1850", "by 1850", "in 1850"), ("after 1860", "in 1870")),
        ("since 1840", ("after 1850", "in 1850"), ("before 1840", "in 1830")),
        ("from 1840 to 1860", ("in 1850",), ("in 1830", "in 1870", "before 1840", "until 1850")),
        ("before 1850", ("until 1860",), ("since 1860",)),
        ("after 1850", ("since 1840",), ("until 1840",)),
    ],
)
def test_an_end_of_a_period_refutes_only_what_lies_outside_it(text, open_claims, false_claims):
    for when in open_claims:
        assert check(f"Ada Byron lived in Ulm {text}.", f"Ada Byron lived in Ulm {when}.") is Verdict.INCONCLUSIVE
    for when in false_claims:
        assert check(f"Ada Byron lived in Ulm {text}.", f"Ada Byron lived in Ulm {when}.") is Verdict.REFUTED


def test_both_of_two_nouns_say_what_somebody_is():
    for trade in ("actor", "rapper"):
        assert check("Jan Holm is an English actor and rapper.", f"Jan Holm is an {trade}.") is Verdict.SUPPORTED
