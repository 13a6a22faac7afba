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
    ("300 people died in the flood.", "Nearly 300 people died in the flood."),
    ("The club was unbeaten in March.", "The club was unbeaten until March."),
    ("The house was destroyed by fire.", "The house was partly destroyed by fire."),
    ("The star has a planet.", "The star may have a planet."),
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
def test_what_restricts_must_not_be_left_out(claim, sentence):
    assert leaves_out_a_restriction(claim, sentence)
    assert not leaves_out_a_restriction(sentence, sentence)


@pytest.mark.parametrize(("claim", "sentence"), FREE)
def test_other_words_may_go(claim, sentence):
    assert not leaves_out_a_restriction(claim, sentence)
    assert not leaves_out_a_border(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The museum is closed.", "The museum is closed on Mondays."),
        ("Dogs are allowed on the beach.", "Dogs are allowed on the beach in winter."),
        ("The tax applies to companies.", "The tax applies to companies with more than 50 employees."),
        ("Refunds are not given.", "Refunds are not given after 30 days."),
        ("The device works with iOS.", "The device works with iOS 14 or later."),
        ("All the houses were destroyed.", "All the houses except the mill were destroyed."),
        ("The tower was destroyed in 1945.", "Apart from the tower, the church was destroyed in 1945."),
    ],
)
def test_conditions_and_exceptions_must_not_be_left_out(claim, sentence):
    assert leaves_out_a_border(claim, sentence)
    assert not leaves_out_a_border(sentence, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The bridge was built in 1911.", "The bridge was built in 1911 with money of the state."),
        ("Paris is the capital of France.", "Paris is the capital of France and lies on the Seine."),
    ],
)
def test_what_happened_happened_whatever_follows(claim, sentence):
    assert not leaves_out_a_border(claim, sentence)


def test_what_was_need_not_be_now():
    assert takes_as_present("The tower is the tallest.", "The tower was the tallest until 1990.")
    assert not takes_as_present("The tower was the tallest.", "The tower was the tallest until 1990.")
    assert not takes_as_present("The tower is old.", "The tower is old and was the tallest.")
