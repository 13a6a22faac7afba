import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.types import VerificationRequest
from ewe.verification.extraction.whole_sentences import WholeSentences

EXTRACTOR = WholeSentences()


def claims(sentence, preceding="", prompt=""):
    [found] = EXTRACTOR.extract([VerificationRequest(prompt, preceding, sentence)])
    return found


def test_a_sentence_is_one_claim_with_its_span():
    [claim] = claims("Ada Lind was born in Oslo and moved to Rome in 1931.")
    assert claim.text == "Ada Lind was born in Oslo and moved to Rome in 1931."
    assert (claim.start, claim.end) == (0, len(claim.text))


def test_what_only_introduces_is_left_out():
    sentence = "- It is worth noting that the bridge opened in 1931."
    [claim] = claims(sentence)
    assert claim.text == "The bridge opened in 1931."
    assert sentence[claim.start : claim.end] == "the bridge opened in 1931."


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "Who was born in Oslo in 1931?",
        "I was born in Oslo in 1931.",
        "Then I moved to Oslo in 1931.",
        "We hope that Ada Lind was in Oslo in 1931.",
        "In Oslo, Ada Lind's letters came to me.",
        "If you want to know more, Oslo has a museum.",
        "You should visit the museum in Oslo.",
        "You may also be interested in Oslo.",
        "Be sure to visit the museum in Oslo.",
        "As an AI language model, Ada Lind is unknown to me.",
        "Early life and career",
        "In 1931",
        "It may be possible.",
        "She was truly remarkable and inspiring.",
    ],
)
def test_what_states_nothing_is_no_claim(sentence):
    assert claims(sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "In I Am Sam (2001) she played a girl of seven.",
        "HT does not engage in jihad, i.e. it works for power.",
        "Rather You Than Me is an album by Rick Ross.",
        "Three Protestants were slaughtered in the city.",
        "Early life ended when war began",
        "The mother of Elizabeth I was executed.",
        "It fell after World War I in 1918.",
        "My Fair Lady is a musical.",
        "You Belong with Me is a song.",
    ],
)
def test_titles_numbers_and_abbreviations_do_not_hide_a_statement(sentence):
    assert len(claims(sentence)) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "You can see the tower from the harbour of Oslo.",
        "To join the Rangers, you must march 12 miles.",
        "What we now call gravity was not understood until 1687.",
        "Your skin turns green if it touches nickel.",
        "Oslo lies north of our Sun's path.",
    ],
)
def test_a_you_that_means_anybody_does_not_hide_a_statement(sentence):
    assert len(claims(sentence)) == 1


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


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=100))
def test_any_text_is_taken_and_spans_lie_inside(sentence, preceding, prompt):
    for claim in claims(sentence, preceding, prompt):
        assert 0 <= claim.start < claim.end <= len(sentence)
        assert claim.text
