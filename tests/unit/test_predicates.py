"""Of whom a sentence says what it says, and how often it says a word."""

import pytest

from ewe.verification.predicates import (
    names_another,
    says_more_often,
    takes_as_done,
    takes_from_the_lead,
    tells_of_another,
)
from ewe.verification.word_order import says_in_another_order

GROUP = "Group Q is a twin-pyramid complex, and is one of the largest at Tikal."
PARENTS = "Al was a welder for pipe construction companies and Evelyn was a field office manager."
EPISODE = '"The Same Old Story" was the first regular episode of Fringe, and critics took it as an example.'
RIDGE = "The Battle of Edson's Ridge, also known as the Battle of the Bloody Ridge, was a land battle on Guadalcanal."


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Tikal is a twin-pyramid complex that is one of the largest at Tikal.", GROUP),
        ("Tim Richmond was a welder for pipe construction companies.", PARENTS),
        ("Al was a field office manager.", PARENTS),
        ("The Fringe series was the first regular episode of Fringe.", EPISODE),
        ("Ada Lind moved to Bergen in 1950.", "After the war Bo Berg moved to Bergen in 1950."),
    ],
)
def test_a_name_that_stands_in_the_place_of_another(claim: str, sentence: str) -> None:
    assert tells_of_another(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Group Q is a twin-pyramid complex.", GROUP),
        ("Evelyn was a field office manager.", PARENTS),
        ("The Fringe episode The Same Old Story was the first regular episode of Fringe.", EPISODE),
        ("The Battle of Edson's Ridge was a land battle on Guadalcanal.", RIDGE),
        ("Beckham was elected to the House.", "In 1894 J. C. W. Beckham was elected to the House."),
        ("Tim Richmond was hospitalized in West Palm Beach.", "He was later hospitalized in West Palm Beach."),
        ("Ringo Starr moved to Monaco.", "After the album, the drummer moved to Monaco."),
        ("Sony opened a shop in Tokyo.", "In Tokyo the company opened a shop."),
        ("Asahi is a version of the Formidable class.", "Asahi's design was a version of that class."),
        ("The European lobster is a species.", "Homarus gammarus, known as the European lobster, is a species."),
        ("The season began in July 2011.", "On Monday, July 11, 2011, the series began its season."),
        ("Closer began in July 2011.", "On Monday, July 11, 2011, the series began in full."),
        ("Gasoline was rationed in Sweden.", "Sweden rationed gasoline."),
        ("Ada and Lind were the two towns created.", "The Huguenots created two towns: Ada and Lind."),
        ("Bo Berg founded a mill in Rome.", "In 1928 Ada tells of a mill in Rome, founded by Bo Berg."),
        ("The race took place on 29 March 2008.", "The 154th Boat Race took place on 29 March 2008."),
        ("Storm Ada killed four.", "Storm Ada was a Category 1 storm that killed four."),
        ("Ada Lind moved to Bergen.", "Roses are red."),
        ("A heading without a verb", GROUP),
        ("", ""),
    ],
)
def test_the_same_name_or_none_that_is_plain_to_see(claim: str, sentence: str) -> None:
    assert not tells_of_another(claim, sentence)


def test_a_word_that_is_said_more_often_than_the_evidence_has_it() -> None:
    evidence = "Fringe: The episode is the second of the first season of the drama series."
    assert says_more_often("The episode is a series of the drama series.", evidence)
    assert not says_more_often("The series is a drama series.", evidence)  # once in what is said of it
    assert not says_more_often("The episode is the second of the season.", evidence)


def test_words_that_come_in_another_order() -> None:
    evidence = "Tikal: It is 303 km north of Guatemala City and 19 kilometres (12 mi) south of Uaxactun."
    assert says_in_another_order("It is 19 kilometres (12 mi) south of Guatemala City.", evidence)
    assert not says_in_another_order("Tikal is 19 kilometres (12 mi) south of Uaxactun.", evidence)
    pie = "Home Made Mince Pie is a silent short comedy produced in 1910 by the Thanhouser Company."
    assert not says_in_another_order("In 1910 Home Made Mince Pie was produced by the Thanhouser Company.", pie)
    assert not says_in_another_order("", pie)


LOBSTERS = (
    "In 2008, 4,386 t were caught in Europe, of which two were young, and 3,462 t were caught in the British Isles."
)
TALKS = "Ian Smith: Talks were ended in May by the furious Rhodesians, with Smith calling Nkomo a monster in public."
MATING = "Mating occurs in summer between a newly moulted female, whose shell is soft, and a hard-shelled male."


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("In 2008, 3,462 t were caught in Europe.", LOBSTERS),
        ("In May talks were ended by the furious Rhodesians, with Nkomo calling Smith a monster in public.", TALKS),
        (
            "Mating occurs in summer between a newly moulted male, whose shell is soft, and a hard-shelled female.",
            MATING,
        ),
        ("Ada Lind was defeated by Bo Berg in Oslo.", "Ada Lind defeated Bo Berg in Oslo."),
        ("Ada Lind defeated Bo Berg in Oslo.", "Ada Lind was defeated by Bo Berg in Oslo."),
    ],
)
def test_a_word_in_the_place_of_another_is_another_order(claim: str, evidence: str) -> None:
    assert says_in_another_order(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence", "title"),
    [
        ("In May talks were ended by the furious Rhodesians, with Smith calling Nkomo a monster.", TALKS, ""),
        (
            "Mating occurs between a newly moulted female, whose shell is soft, and a hard-shelled male in summer.",
            MATING,
            "",
        ),
        ("In May the mill was built by Ada Lind in Oslo.", "Ada Lind built the mill in May in Oslo.", ""),
        ("Ada Lind built the mill.", "The mill was built by Ada Lind in Oslo.", ""),
        ("In 2008, 4386 t were caught in Europe, of which 2 were young.", LOBSTERS, ""),
        ("The eggs of the lobster hatch.", "Lobster: The eggs hatch at night.", "Lobster"),
    ],
)
def test_a_phrase_that_moves_with_its_preposition_keeps_the_order(claim: str, evidence: str, title: str) -> None:
    assert not says_in_another_order(claim, evidence, title)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The bridge was opened in 2027.", "The bridge will be opened in 2027."),
        ("The council sold the mill.", "The council intends to sell the mill."),
        ("Ann Holt won the election.", "Ann Holt was expected to win the election."),
        ("It has 300 seats.", "It will have 300 seats."),
        ("Codeine causes nausea.", "Codeine may cause nausea."),
        ("The firm sold the mill.", "The firm might have sold the mill."),
    ],
)
def test_what_is_only_planned_or_expected_is_not_done(claim: str, evidence: str) -> None:
    assert takes_as_done(claim, evidence)
    assert not takes_as_done(evidence, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The house was built in 1930.", "The house was built in 1930 and will be sold."),
        ("Ann Holt won in 1999.", "Ann Holt planned to win, and won in 1999."),
        ("The mast was raised in 1911.", "The mast was raised in May 1911."),
        ("The mast was raised in 1911.", "The mast was raised on 3 May 1911."),
    ],
)
def test_a_plan_for_something_else_leaves_what_is_done(claim: str, evidence: str) -> None:
    assert not takes_as_done(claim, evidence)


SALE = "The mill was bought by Ole Berg in 1921 and sold to Ann Holm, who succeeded Bo Lind."


@pytest.mark.parametrize(
    ("claim", "is_another"),
    [
        ("The mill was bought by Ann Holm.", True),
        ("The mill was sold to Bo Lind.", True),
        ("The mill was bought by Ole Berg.", False),
        ("The mill was bought by Berg.", False),
        ("The mill was sold to Ann Holm.", False),
        ("Ann Holm succeeded Bo Lind.", False),
    ],
)
def test_a_name_behind_the_verb_where_the_evidence_has_another(claim: str, is_another: bool) -> None:
    assert names_another(claim, SALE) is is_another


def test_names_of_a_list_are_in_one_place() -> None:
    assert not names_another("She visited Oslo.", "She visited Rome and Oslo.")
    assert not names_another("She was born in Norway.", "She was born in Oslo, Norway.")


def test_what_the_sentence_before_says_is_not_said_by_the_sentence() -> None:
    assert takes_from_the_lead("The museum is open on Mondays.", "The museum: It is closed on Mondays.")
    assert not takes_from_the_lead("The museum is closed on Mondays.", "It is closed on Mondays.")


def test_numbers_and_months_are_the_same_in_words_and_in_short() -> None:
    assert not says_in_another_order("It has three ovens.", "It has 3 ovens.")
    assert not says_in_another_order("It was fixed on 8 November.", "It was fixed on 8 Nov.")
