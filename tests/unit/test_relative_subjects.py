"""What a relative clause says is said of the name or noun before it."""

import pytest

from ewe.verification.relative_subjects import takes_from_a_relative_clause


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Ivan Petrov had held the post since 2011.", "He succeeds Lucy Marsh, who had held the post since 2011."),
        ("Ivan Petrov had held the post.", "Ivan Petrov succeeds Lucy Marsh, who had held the post since 2011."),
        ("Anna Berg had painted the hall.", "Anna Berg met Karl Holm, who had painted the hall."),
        ("The treatment lived 20% longer.", "The treatment was tested on mice, which lived 20% longer."),
        ("The bridge was built in 1803.", "The bridge is next to the Old Mill, which was built in 1803."),
        ("The bridge was built in 1803.", "It adjoins the mill, which was built in 1803."),
        ("The bridge carried 300 passengers.", "The bridge replaced a ferry that carried 300 passengers."),
    ],
)
def test_what_is_said_of_the_word_before_is_not_said_of_another(claim: str, sentence: str) -> None:
    assert takes_from_a_relative_clause(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Lucy Marsh had held the post since 2011.", "He succeeds Lucy Marsh, who had held the post since 2011."),
        ("Ivan Petrov succeeds Lucy Marsh.", "Ivan Petrov succeeds Lucy Marsh, who had held the post since 2011."),
        ("Elsa Brandt designed the library.", "Brandt: She was an architect who designed the library."),
        ("Elsa Brandt designed the library.", "Elsa Brandt was an architect from Bonn who designed the library."),
        ("Karl Holm lived in Riga.", "Karl Holm, mayor of Oslo, who lived in Riga, was a painter."),
        ("Anna Berg lived in Riga.", "Anna Berg from Oslo, who lived in Riga, was a painter."),
        ("Ada won the prize.", "The prize, which Ada won, is of gold."),
        ("The bridge is of wood.", "The bridge, which Bo built in 1920, is of wood."),
        ("Bo sang in the hall.", "The hall in which Bo sang was full."),
        ("The tunnel is safe.", "The minister said that the tunnel is safe."),
    ],
)
def test_its_own_subject_and_the_main_clause_stay(claim: str, sentence: str) -> None:
    assert not takes_from_a_relative_clause(claim, sentence)
