"""A claim that leaves out what restricts its evidence says more, and what may be left out is left out freely."""

import pytest

from ewe.verification.omissions import leaves_out_a_border, takes_as_present
from ewe.verification.restrictions import leaves_out_a_restriction

RESTRICTED = [
    ("Libya is the largest country in Africa.", "Libya is the fourth largest country in Africa."),
    ("Berlin is the largest city in Europe.", "Berlin is one of the largest cities in Europe."),
    ("The lake is the deepest lake of the country.", "The lake is the second-deepest lake of the country."),
    ("Anna Berg was the mayor of Oslo.", "Anna Berg was the deputy mayor of Oslo."),
    ("The capital is Kilwa.", "The former capital is Kilwa."),
    ("The soldiers survived the battle.", "Few of the soldiers survived the battle."),
    ("The three ships sank.", "Two of the three ships sank."),
    ("The town has a population of 5,000.", "The town has a population of less than 5,000."),
    ("The river is at zero degrees.", "The river is at below zero degrees."),
    ("300 people died in the flood.", "Nearly 300 people died in the flood."),
    ("The club was unbeaten in March.", "The club was unbeaten until March."),
    ("The house was destroyed by fire.", "The house was partly destroyed by fire."),
    ("The star has a planet.", "The star may have a planet."),
    ("Ann Holt won the election.", "Ann Holt almost won the election."),
    ("The school was opened in 1990.", "The school was to be opened in 1990."),
    ("The island became part of France.", "The island was to become part of France."),
    ("The bridge was the longest of all.", "The bridge would have been the longest of all."),
    ("The Wall is visible from the Moon.", "It is a myth that the Wall is visible from the Moon."),
    ("The station was closed in 1990.", "The committee recommended that the station be closed in 1990."),
    ("The church was built by the Normans.", "It is unclear whether the church was built by the Normans."),
    ("Saint Alban founded the abbey.", "According to legend, Saint Alban founded the abbey."),
    ("The bridge was built.", "If the bridge had been built, it would have been the longest."),
    (
        "The river is the longest river in Asia.",
        "The river is the third longest river in Asia and the longest in China.",
    ),
]
FREE = [
    ("The letter was sold in 1990.", "The museum shows a possibly fake letter, and the letter was sold in 1990."),
    ("The bridge was built by Ada Lind.", "The old stone bridge was built by Ada Lind in 1911."),
    ("Berlin is the largest city.", "Berlin is the largest and richest city."),
    ("The river is the longest in China.", "The river is the third longest river in Asia and the longest in China."),
    ("Anna Berg was elected mayor.", "Anna Berg, who had been deputy mayor, was elected mayor."),
    ("Most of the people speak Swahili.", "Most of the people speak Swahili."),
    ("More than 300 people died.", "Over 300 people died."),
    ("Anna Berg opened the museum.", "The former mayor Anna Berg opened the museum."),
    ("The novel was published in 1990.", "The novel, which may be her best, was published in 1990."),
    ("The population was 5,000 in 1990.", "According to the census, the population was 5,000 in 1990."),
    ("It opened in May 1990.", "It opened in May 1990."),
]


@pytest.mark.parametrize(("claim", "sentence"), RESTRICTED)
def test_what_restricts_must_not_be_left_out(claim: str, sentence: str) -> None:
    assert leaves_out_a_restriction(claim, sentence)
    assert not leaves_out_a_restriction(sentence, sentence)


@pytest.mark.parametrize(("claim", "sentence"), FREE)
def test_other_words_may_go(claim: str, sentence: str) -> None:
    assert not leaves_out_a_restriction(claim, sentence)
    assert not leaves_out_a_border(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The museum is closed.", "The museum is closed on Mondays."),
        ("Flights may be booked in economy.", "Flights longer than six hours may be booked in economy."),
        ("Orders need two signatures.", "Orders above EUR 5,000 need two signatures."),
        ("The ferry returns to port.", "If the battery is low, the ferry returns to port."),
        ("The laptop may be used at home.", "The laptop may be used at home if the manager agrees."),
        ("Staff may operate the crane.", "Staff who have passed the exam may operate the crane."),
        ("Contractors wear a blue badge.", "All visitors except contractors wear a blue badge."),
        ("The Oslo office is open.", "Neither the Oslo nor the Bergen office is open."),
        ("The bus goes to Oslo.", "The bus goes to Oslo on Mondays."),
        ("Children ride free.", "Children ride free on Mondays."),
        ("The supplier is not liable for delays.", "The supplier is not liable for delays caused by floods."),
        ("Remote work is allowed.", "Remote work is allowed on Mondays only."),
        ("The warranty is two years.", "The standard warranty is two years; the extended warranty is five years."),
        ("Each ticket is valid for one trip.", "Each ticket within zone A is valid for one trip."),
        ("Ada was the first to climb it.", "Ada was the first woman to climb it."),
        ("She is the youngest judge.", "She is the youngest judge in the province."),
        ("The bones belong to Odo.", "The bones belong either to Odo or to Gerard."),
        ("Oslo was founded in 1811.", "The University of Oslo was founded in 1811."),
        ("The drug helped in trials.", "The drug helped in mice, but has yet to be used in trials."),
        ("Dogs are allowed on the beach.", "Dogs are allowed on the beach in winter."),
        ("The tax applies to companies.", "The tax applies to companies with more than 50 employees."),
        ("Refunds are not given.", "Refunds are not given after 30 days."),
        ("The device works with iOS.", "The device works with iOS 14 or later."),
        ("All the houses were destroyed.", "All the houses except the mill were destroyed."),
        ("The tower was destroyed in 1945.", "Apart from the tower, the church was destroyed in 1945."),
    ],
)
def test_conditions_and_exceptions_must_not_be_left_out(claim: str, sentence: str) -> None:
    assert leaves_out_a_border(claim, sentence) or leaves_out_a_restriction(claim, sentence)
    assert not leaves_out_a_border(sentence, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The bridge was built in 1911.", "The bridge was built in 1911 with money of the state."),
        ("The standard warranty is two years.", "The standard warranty is two years; the extended one is five."),
        ("Remote work is allowed on Mondays.", "Remote work is allowed on Mondays only."),
        ("The film was released in 2001.", "The film, directed by Ada Lind, was released in 2001."),
        ("It was built in 1910.", "It employs over 412 people and was built in 1910."),
        ("The fee is due.", "The fee is due; if it is late, a fine is added."),
        ("Titan has an atmosphere.", "Titan has an atmosphere that consists of nitrogen."),
        ("The city of Oslo is old.", "The city of Oslo is old and rich."),
        ("Oslo is old.", "The city of Oslo is old."),
        ("Ravel is a composer.", "The French artist Ravel is a composer."),
        ("The gel must not touch burns.", "The gel must not touch burns or wounds."),
        ("Paris is the capital of France.", "Paris is the capital of France and lies on the Seine."),
    ],
)
def test_what_happened_happened_whatever_follows(claim: str, sentence: str) -> None:
    assert not leaves_out_a_border(claim, sentence)


def test_what_was_need_not_be_now() -> None:
    assert takes_as_present("The tower is the tallest.", "The tower was the tallest until 1990.")
    assert not takes_as_present("The tower was the tallest.", "The tower was the tallest until 1990.")
    assert not takes_as_present("The tower is old.", "The tower is old and was the tallest.")


@pytest.mark.parametrize(
    ("claim", "sentence", "is_more"),
    [
        ("", "", False),
        ("It was first.", "It was first.", False),
        ("東京は首都です。", "東京", False),
        ("This is the town that she came from.", "This is the town that she came from in 1990.", False),
        ("She is the one that all came for.", "She is the one that all came for from Oslo.", True),
        ("This is what it stands for", "This is what it stands for Monday", False),
    ],
)
def test_texts_without_content_or_with_an_open_end_are_read(claim: str, sentence: str, is_more: bool) -> None:
    assert leaves_out_a_border(claim, sentence) == is_more
    assert not leaves_out_a_restriction(claim, sentence)
