import pytest

from ewe.types import VerificationRequest
from ewe.verification.extraction.whole_sentences import WholeSentences


def claims(sentence):
    [found] = WholeSentences().extract([VerificationRequest("", "", sentence)])
    return found


def reason(sentence):
    return claims(sentence).reason


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


WHY = {
    "greeting or thanks": [
        "Hello!",
        "Hi there!",
        "Thank you for the question.",
        "Thanks for asking about Oslo.",
        "You're welcome!",
        "Sure!",
        "That's a great question about Oslo!",
        "I hope this helps!",
    ],
    "cut off": ["South of the Trout Creek Mountains is", "Between Oslo and Bergen, the", "He was born in Oslo and"],
    "question": ["Who was born in Oslo in 1931?", '"Was it Oslo?"', "Would you like to know more about Oslo?"],
    "offer": [
        "Let me know if you have questions about Oslo.",
        "Feel free to ask about Oslo.",
        "If you want to know more, Oslo has a museum.",
        "I can also tell you about Oslo.",
    ],
    "instruction or advice": [
        "You should visit the museum in Oslo.",
        "Visit the museum in Oslo.",
        "Please see the museum of Oslo.",
        "Don't forget the museum in Oslo.",
        "Make sure to book 2 days ahead in Oslo.",
        "Add 2 cups of flour to the bowl.",
        "1. Check that the 3 bolts hold.",
    ],
    "abstention": [
        "The passages do not say.",
        "The passages do not say when Ada Lind was born.",
        "The text does not mention Ada Lind's birth.",
        "The provided context doesn't include information about Oslo.",
        "I am not sure.",
        "I'm not sure when Ada Lind was born.",
        "I don't know.",
        "I do not know who built the bridge in Oslo.",
        "There is no information about Ada Lind in the context.",
        "There is no mention of Oslo in the passages.",
        "Unfortunately, the passages provide no information about Ada Lind.",
        "Sorry, I could not find the year of her birth.",
        "None of the passages mention Ada Lind.",
        "Neither passage says when Ada Lind was born.",
        "No information about Ada Lind is given.",
        "Ada Lind's birth is not mentioned in the passages.",
        "The answer cannot be determined from the text.",
        "It is not clear from the passages when Ada Lind was born.",
        "It is not possible to say when Ada Lind was born.",
        "Based on the passages, I cannot answer the question.",
        "I have no information about Ada Lind.",
        "Not mentioned.",
        "Unknown.",
        "**The passages do not say.**",
        "Answer: The passages do not say.",
        "The context does not specify the year 1931.",
        "I couldn't find anything about Ada Lind in the documents.",
        "Nothing is said about Ada Lind.",
        "The documents don't tell us when Ada Lind was born.",
        "That question cannot be answered from 2 passages.",
    ],
    "opinion": ["She was truly remarkable and inspiring.", "I think that Oslo is the capital of Norway."],
    "heading": [
        "Early life and career",
        "## The bridge of Oslo was built.",
        "The following towns are in Norway:",
        "The features of the library",
        "Opening hours:",
        "**Opening hours:**",
        "Norway: a short history",
        "Oslo: The City of Books",
        "Chapter 2: The war of 1931",
        "Opening hours",
        "Its plans to employ 12 people",
    ],
    "table": [
        "| Item | Limit |\n|---|---|\n| Meals | 53 euros |",
        "| Name | Opened |\n|:---|---:|\n| The bridge was built in Oslo. | 1932 |",
    ],
    "about the writer": [
        "As an AI language model, Ada Lind is a mystery.",
        "I was born in Oslo in 1931.",
        "In this answer, Oslo is the town.",
    ],
    "no statement": ["", "In 1931.", "It may be possible."],
    "not English": [
        "Oslo ist die Hauptstadt von Norwegen und liegt an einem Fjord.",
        "Oslo est la capitale de la Norvège et une ville du nord.",
        "Осло является столицей и крупнейшим городом Норвегии.",
        "奥斯陆是挪威的首都，也是挪威最大的城市和港口。",
    ],
    "longer than 2000 characters": ["Oslo is a town. " * 200],
}


@pytest.mark.parametrize(("why", "sentence"), [(why, sentence) for why, group in WHY.items() for sentence in group])
def test_a_sentence_without_a_claim_has_a_reason(why, sentence):
    assert claims(sentence) == []
    assert reason(sentence) == why


@pytest.mark.parametrize(
    "sentence",
    [
        "The treaty does not mention slavery.",
        "- It holds 62,000 books",
        "Meals: up to 53 euros",
        "- **Opening hours:** 9 to 17",
        "**Length of the bridge**: 340 m",
        "- The library employs 99 people",
        "The constitution of 1931 does not say who elects the king.",
        "There is no evidence of life on Mars.",
        "No information was exchanged with Sweden until 1931.",
        "Nothing was left of Oslo in 1945.",
        "It is not known when Ada Lind was born.",
        "Hello Kitty was created in 1974.",
        "Thank You is a song by Dido.",
        "Thanks to his father, Bo Berg was a weaver.",
        "Open the Door is a song of 1931.",
        "Visit to a Small Planet is a play of 1957.",
        "Welcome to the Jungle is a song of 1987.",
        "The building is listed grade I or II in Oslo.",
        "Class I molecules are found on 3 kinds of cells.",
        "Juan de la Cruz y de los Santos of El Salvador won it in 1931.",
        "La Dolce Vita is a film by Federico Fellini.",
        "Пушкин was a poet.",
        "The Tokugawa (徳川幕府の将軍家と大名家) ruled Japan from 1603.",
    ],
)
def test_a_statement_that_looks_like_none_is_a_claim(sentence):
    assert reason(sentence) == "" and len(claims(sentence)) == 1  # noqa: PT018


def test_a_sentence_that_loops_states_nothing():
    looped = "The company that was sued is the company that was sued is the company that was sued."
    [found] = WholeSentences().extract([VerificationRequest("", "", looped)])
    assert (list(found), found.reason) == ([], "repeats itself")
    [found] = WholeSentences().extract(
        [VerificationRequest("", "", "The company that was sued moved to Oslo in 1931.")]
    )
    assert found


@pytest.mark.parametrize(
    ("before", "sentence", "repeats"),
    [
        ('1. "Devotion to duty" (1954 Honours)\n', '2. "Devotion to duty" (1954 Honours)', True),
        ("**Change of the whole system**:\n\n", "**Change of the whole system**:", True),
        ("**Change of the whole system**:\n\n", "**Change of another system**:", False),
        ("Of course!\n\n", "Of course!", False),
        ("", '2. "Devotion to duty" (1954 Honours)', False),
    ],
)
def test_what_states_nothing_may_be_said_once(before: str, sentence: str, repeats: bool) -> None:
    [found] = WholeSentences().extract([VerificationRequest("", before, sentence)])
    assert not found
    assert (found.reason == "repeats an earlier sentence") is repeats


@pytest.mark.parametrize(
    "opening",
    [
        "According to the context provided, ",
        "Based on the information provided in the context, ",
        "From the given documents, ",
        "Based on the information given in the passages above, ",
    ],
)
def test_where_a_claim_is_from_is_no_part_of_it(opening: str) -> None:
    [claim] = claims(f"{opening}Ada Lind was born in Oslo in 1931.")
    assert claim.text == "Ada Lind was born in Oslo in 1931."


def test_lines_that_state_values_are_claims_of_their_own():
    text = "Meals: up to 53 euros\n**Hotel:** up to 120 euros"
    found = claims(text)
    assert [claim.text for claim in found] == ["Meals: up to 53 euros", "Hotel: up to 120 euros"]
    assert [text[claim.start : claim.end] for claim in found] == text.split("\n")
