"""What asks for all there is to say of a subject, and what for one thing."""

import pytest

from ewe.text.overviews import asks_for_all, asks_for_length


@pytest.mark.parametrize(
    "request_text",
    [
        "Tell me about U2",
        "Who was Ada Weston?",
        "who is Joan of Arc",
        "What's LLM Inference?",
        "What is the Zrinski Battalion?",
        "Who was Ada Lind, and what is she remembered for?",
        "Who was the Norwegian politician Ada Lind? Write a few paragraphs.",
        "What are oxaziridines? Please give a general introduction.",
        "What is a lobster?",
        "What were river boats, and why did they matter?",
        "Describe Shackleton, the crater on the Moon.",
        "Summarize what New York State Route 31B was.",
        "Explain what the War Graves Commission is and what it does.",
        "What is the early history of Meridian, up to the Civil War?",
        "What is the story behind Home Made Mince Pie?",
    ],
)
def test_what_asks_for_all_there_is_to_say(request_text: str) -> None:
    assert asks_for_all(request_text)


@pytest.mark.parametrize(
    "request_text",
    [
        "Who was Napoleon married to?",
        "Who is the mayor of Rome?",
        "What was Ada's first book?",
        "What is the height of Rome?",
        "What is 2 + 2?",
        "Who is the CEO of Apple?",
        "What is the GDP of France?",
        "What was the U.S. Information Agency charged with doing?",
        "What was Warner the center of?",
        "What is wrong with it?",
        "What is the price?",
        "What is his name?",
        "What is Portland's population?",
        "Describe Asahi's size, engines and armour",
        "Explain to a kid how the people of Tikal got their water.",
        "Describe the life of a bee",
    ],
)
def test_what_asks_for_one_thing(request_text: str) -> None:
    assert not asks_for_all(request_text)


def test_a_length_that_is_asked_for() -> None:
    assert asks_for_length("Tell me in two sentences about Rome")
    assert asks_for_length("Briefly, who was Ada Lind?")
    assert not asks_for_length("Write a short article about Rome")
