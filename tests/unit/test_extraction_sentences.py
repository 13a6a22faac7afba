import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.types import VerificationRequest
from ewe.verification.extraction.context import previous_sentence
from ewe.verification.extraction.whole_sentences import WholeSentences

EXTRACTOR = WholeSentences()


def claims(sentence, preceding="", prompt=""):
    [found] = EXTRACTOR.extract([VerificationRequest(prompt, preceding, sentence)])
    return found


def reason(sentence, preceding="", prompt=""):
    found = claims(sentence, preceding, prompt)
    assert not found or found.reason == ""
    return found.reason


def test_a_sentence_is_one_claim_with_its_span():
    [claim] = claims("Ada Lind was born in Oslo in 1931.")
    assert claim.text == "Ada Lind was born in Oslo in 1931."
    assert (claim.start, claim.end) == (0, len(claim.text))


def test_each_clause_is_a_claim_with_its_span_and_its_subject():
    sentence = "- However, she was born in Oslo and moved to Rome in 1931."
    first, second = claims(sentence, "Ada Lind was a weaver. ", "Who was Ada Lind?")
    assert (first.text, second.text) == ("Ada Lind was born in Oslo.", "Ada Lind moved to Rome in 1931.")
    own = [sentence[claim.start : claim.end] for claim in (first, second)]
    assert own == ["she was born in Oslo", "moved to Rome in 1931."]
    [whole] = WholeSentences(clauses=False).extract([VerificationRequest("", "", sentence)])[0]
    assert whole.text == "She was born in Oslo and moved to Rome in 1931."


def test_what_only_introduces_is_left_out():
    sentence = "- It is worth noting that the bridge opened in 1931."
    [claim] = claims(sentence)
    assert claim.text == "The bridge opened in 1931."
    assert sentence[claim.start : claim.end] == "the bridge opened in 1931."


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("She was born in 1931.", "Ada Lind was born in 1931."),
        ("Her father was a weaver.", "Ada Lind's father was a weaver."),
        ("In 1931 she moved to Rome.", "In 1931 Ada Lind moved to Rome."),
        ("Bo Berg met her in 1931.", "Bo Berg met her in 1931."),
    ],
)
def test_a_pronoun_is_named_from_the_text_before_unless_the_sentence_names_somebody(sentence, wanted):
    assert [claim.text for claim in claims(sentence, "Ada Lind was a weaver. ", "Who was Ada Lind?")] == [wanted]


def test_a_name_of_one_word_is_believed_only_if_the_prompt_has_it():
    before = "Many fled from France. "
    assert [claim.text for claim in claims("He settled in Oslo.", before)] == ["He settled in Oslo."]
    [claim] = claims("He settled in Oslo.", "", "Tell me about Berg.")
    assert claim.text == "Berg settled in Oslo."


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("Tell me about New Jersey Route 29.", "New Jersey Route 29 is 34 miles long."),
        ("Tell me about Where the Streets Have No Name.", "Where the Streets Have No Name is 34 miles long."),
        ("Tell me about the Battle of Edson's Ridge.", "The Battle of Edson's Ridge is 34 miles long."),
        ("Write a short text about the road of the Bo Berg Company.", "The Bo Berg Company is 34 miles long."),
    ],
)
def test_what_the_prompt_asks_about_is_named_whole(prompt, wanted):
    assert [claim.text for claim in claims("It is 34 miles long.", "", prompt)] == [wanted]


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=100))
def test_any_text_is_taken_and_spans_lie_inside(sentence, preceding, prompt):
    for claim in claims(sentence, preceding, prompt):
        assert 0 <= claim.start < claim.end <= len(sentence)
        assert claim.text


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("Paris: It is the capital of France.", "Paris is the capital of France."),
        ("**Eiffel Tower**: It was built in 1889.", "Eiffel Tower was built in 1889."),
        ("1. **Oslo** - The town was founded in 1048.", "The town was founded in 1048."),
        ("* **Oslo** lies on a fjord of *Norway*.", "Oslo lies on a fjord of Norway."),
        ("Assistant: Oslo is the capital of Norway.", "Oslo is the capital of Norway."),
        ("**Answer:** Oslo is the capital of Norway.", "Oslo is the capital of Norway."),
        ("However, Oslo is the capital of Norway.", "Oslo is the capital of Norway."),
        ("In conclusion, Oslo is the capital of Norway.", "Oslo is the capital of Norway."),
        ("According to the passages, Oslo is the capital of Norway.", "Oslo is the capital of Norway."),
        ("Based on the provided context, Oslo is the capital of Norway.", "Oslo is the capital of Norway."),
        ("Yes, however, the town was founded in 1048.", "The town was founded in 1048."),
        ("But the town was founded in 1048.", "The town was founded in 1048."),
        ("Oslo is the capital of Norway [1][2, 3].", "Oslo is the capital of Norway."),
        ("[Oslo](https://oslo.no) is the capital of Norway.", "Oslo is the capital of Norway."),
        ("**Capital of Norway**: Oslo has 700,000 people.", "Oslo has 700,000 people."),
        ("Mission: Impossible is a film of 1996.", "Mission: Impossible is a film of 1996."),
        ("Alien: Covenant was shot in 2016.", "Alien: Covenant was shot in 2016."),
        ("The rule was this: Oslo is in Norway.", "The rule was this: Oslo is in Norway."),
        ("Area is 2 * 3 * 4 of Oslo.", "Area is 2 * 3 * 4 of Oslo."),
        ("According to Bo Berg, Oslo is in Norway.", "According to Bo Berg, Oslo is in Norway."),
        ("And Then There Were None is a novel.", "And Then There Were None is a novel."),
    ],
)
def test_what_stands_around_a_claim_is_no_part_of_it(sentence, wanted):
    [claim] = claims(sentence)
    assert claim.text == wanted
    assert sentence[claim.start : claim.end].rstrip("*") == sentence[claim.start :].rstrip("*")


@pytest.mark.parametrize(
    "sentence",
    [
        "It was Bo Berg that built the tower.",
        "It was the French who built the tower.",
        "It was in 1931 that the tower was built.",
        "It was not until 1931 that the tower opened.",
        "It was his brother who built the tower in 1931.",
        "It is known that the tower opened in 1931.",
        "It is widely believed that Rome was built in a day.",
        "It's likely that Rome was older.",
        "It rained in Oslo in 1931.",
        "It was cold in Oslo in 1931.",
        "It took ten years to build Rome.",
        "It is possible to reach Oslo by train.",
        "It turned out that Rome was older.",
        "It was 20 years before Rome had a king.",
    ],
)
def test_an_it_that_stands_for_nothing_is_never_named(sentence):
    assert [
        claim.text for claim in claims(sentence, "The Eiffel Tower is in Paris. ", "What is the Eiffel Tower?")
    ] == [sentence]


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("It is a tower that stands in Paris.", "The Eiffel Tower is a tower that stands in Paris."),
        ("It is the tower that Bo Berg built.", "The Eiffel Tower is the tower that Bo Berg built."),
        ("It was built to last until 1909.", "The Eiffel Tower was built to last until 1909."),
        ("It is 330 metres high.", "The Eiffel Tower is 330 metres high."),
        ("Its height is 330 metres.", "The Eiffel Tower's height is 330 metres."),
    ],
)
def test_an_it_that_stands_for_the_subject_before_is_named(sentence, wanted):
    assert [claim.text for claim in claims(sentence, "The Eiffel Tower is in Paris. ", "What is it?")] == [wanted]


@pytest.mark.parametrize(
    "preceding",
    [
        "Ada Lind married Bo Berg. ",  # either of them
        "Ada Lind was a weaver. She was born in Oslo. ",  # a woman
    ],
)
def test_a_pronoun_that_may_mean_another_is_left_as_it_is(preceding):
    [claim] = claims("He died in 1950.", preceding, "Who was Ada Lind?")
    assert claim.text == "He died in 1950."


def test_the_only_other_person_is_meant_where_the_subject_cannot_be():
    before = "Ada Lind was a weaver. She married Bo Berg. "
    assert [claim.text for claim in claims("He died in 1950.", before, "Who was Ada Lind?")] == [
        "Bo Berg died in 1950."
    ]


@pytest.mark.parametrize(
    ("preceding", "sentence"),
    [
        ("Ada Lind was born in Oslo in 1931. Bo Berg died. ", "Ada Lind was born in Oslo in 1931."),
        ("Ada Lind was born in Oslo in 1931. ", "In 1931, Ada Lind was born in Oslo."),
        ("Ada Lind was born in Oslo in 1931. ", "She was born in Oslo in 1931."),
        ("Ada Lind was a weaver. She was born in Oslo. ", "In conclusion, Ada Lind was born in Oslo."),
        ("Ada Lind was born in Oslo and moved to Rome. ", "Ada Lind moved to Rome."),
        ("Oxford won the 2008 race by six lengths in heavy rain. ", "Oxford won the 2008 race."),
        ("In 1931, Ada Lind, a weaver, was born in the city of Oslo. ", "Ada Lind was born in the city of Oslo."),
    ],
)
def test_a_sentence_that_says_the_same_again_repeats(preceding, sentence):
    assert reason(sentence, preceding, "Who was Ada Lind?") == "repeats an earlier sentence"


@pytest.mark.parametrize(
    ("preceding", "sentence"),
    [
        ("Was Ada Lind born in Oslo? ", "Ada Lind was born in Oslo."),
        ("Ada Lind was not born in Oslo. ", "Ada Lind was born in Oslo."),
        ("The mill was probably built in 1900 by Bo Berg. ", "The mill was built in 1900 by Bo Berg."),
        ("Oxford won the 2008 race. ", "Oxford won the 2008 race by six lengths."),
        ("Ada Lind lost in Rome, and Bo Berg won the golden cup of Oslo. ", "Ada Lind won the golden cup of Oslo."),
        ("Ada Lind was born in Oslo in 1931. ", "Ada Lind was born in Oslo in 1932."),
        ("Bo Berg beat Ada Lind. ", "Ada Lind beat Bo Berg."),
        ("Ada Lind went to Rome from Oslo. ", "Ada Lind went from Rome to Oslo."),
        ("Ada Lind was born in Oslo. ", "Ada Lind died in Oslo."),
        ("The hull is covered for ten years and the sail for two years. ", "The hull is covered for two years."),
        ("The mill has five wheels and two towers. ", "The mill has two wheels and five towers."),
        ("Profit fell to 3.1 million euros in 2024. ", "Profit fell by 3.1 million euros in 2024."),
        ("I think Ada Lind was born in Oslo. ", "Ada Lind was born in Oslo."),
        ("Leeds beat Harwick in the final. ", "Harwick beat Leeds in the final."),
        ("Full-time employees get 28 days of leave. ", "Employees get 28 days of leave."),
        ("Entry to the fair is free for children under 12. ", "Entry to the fair is free for children."),
        ("The full warranty lasts five years for private customers. ", "The full warranty lasts five years."),
        ("The 30 pumps will arrive in Oslo on Thursday. ", "The 30 pumps arrived in Oslo on Thursday."),
        ("Seven of nine board members were present. ", "Nine board members were present."),
    ],
)
def test_a_sentence_that_says_something_else_does_not_repeat(preceding, sentence):
    assert len(claims(sentence, preceding, "Who was Ada Lind?")) == 1


def test_the_sentence_before_is_the_last_one_of_the_text_before():
    assert (
        previous_sentence(VerificationRequest("Who?", "Ada Lind left. Bo Berg stayed. ", "He slept."))
        == "Bo Berg stayed."
    )
    assert previous_sentence(VerificationRequest("Who?", " ", "He slept.")) == ""


PIECES = st.sampled_from(
    ["**", "It ", "Paris", ": ", "- ", "1. ", "However, ", "he ", "was born", ", and ", "; ", "Answer: ", "in 1931",
     ".", "\n", "“", "(", "_", "[1]", "The passages do not say", " who ", "é", "中"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30))
def test_odd_texts_of_telling_pieces_give_claims_or_a_reason(pieces):
    sentence = "".join(pieces)
    found = claims(sentence, sentence, sentence)
    assert bool(found) != bool(found.reason)
    for claim in found:
        assert 0 <= claim.start < claim.end <= len(sentence)
        assert claim.text.strip()
