"""What a claim leaves out of its evidence may matter or not: a small model reads it, and these are many cases."""

import json
from pathlib import Path

import pytest

from ewe.verification.left_out import (
    changes_nothing,
    changes_one_place,
    drops_a_rank,
    drops_an_exception,
    leaves_out_words,
)
from ewe.verification.omission_reader import still_said

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "verdicts_omissions.jsonl"
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
CONDITIONS = [
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
    ("Refunds are paid within 14 days.", "Refunds are paid within 14 days, unless the parcel is damaged."),
    ("Staff may work from home.", "Staff may work from home, apart from those of the laboratory."),
    ("The tower was destroyed in 1945.", "Apart from the tower, the church was destroyed in 1945."),
]
WHATEVER_FOLLOWS = [
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
]


def share_said(cases: list[tuple[str, str]]) -> float:
    """Of claims and their evidence the share that the evidence still says."""
    said = still_said([(sentence, claim) for claim, sentence in cases])
    return sum(said) / len(cases)


def test_most_of_what_restricts_must_not_be_left_out_and_most_of_the_rest_may() -> None:
    assert share_said(RESTRICTED + CONDITIONS) <= 0.15
    assert share_said(FREE + WHATEVER_FOLLOWS) >= 0.65
    assert share_said([(sentence, sentence) for _, sentence in RESTRICTED + CONDITIONS]) >= 0.95


def test_of_claims_that_no_training_saw_few_false_ones_are_said() -> None:
    rows = [json.loads(line) for line in BENCHMARK.read_text(encoding="utf-8").splitlines()]
    reported = [row for row in rows if row["half"] == "report"]
    true, false = (
        [(row["claim"], row["evidence"]) for row in reported if row["label"] == label]
        for label in ("supported", "refuted")
    )
    assert share_said(true) >= 0.75
    assert share_said(false) <= 0.2


def test_no_model_is_loaded_for_nothing() -> None:
    assert still_said([]) == []


@pytest.mark.parametrize(("claim", "sentence"), RESTRICTED + CONDITIONS)
def test_what_is_left_out_is_seen(claim: str, sentence: str) -> None:
    assert leaves_out_words(claim, sentence)
    assert not leaves_out_words(sentence, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("", ""),
        ("東京は首都です。", "東京"),
        ("The bridge was opened in May.", "The bridge was opened in May, and a toll was taken."),
        ("Bridges were opened in May.", "The bridges were opened in May."),
        ("Big ships sank.", "Large ships sank."),
    ],
)
def test_other_words_articles_and_what_follows_a_mark_are_not_left_out(claim: str, sentence: str) -> None:
    assert not leaves_out_words(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence", "is_one"),
    [
        ("The club began playing in 1968.", "The club began playing in 1967.", True),
        ("The club did not begin in 1967.", "The club did begin in 1967.", True),
        ("Ada Lind was born in Rome.", "She was born in Bergen.", True),
        ("The club started in June from an old boat.", "The club began on 2 June from a former boat.", False),
        ("The bridge was opened in 1932.", "The bridge opened in 1923.", True),
        ("Every member owes a fee of two euros.", "Guests pay two euros.", False),
        ("The old mill was built by four monks of the abbey.", "The old mill was built in 1967.", False),
    ],
)
def test_a_change_in_one_place_is_told_from_other_words(claim: str, sentence: str, is_one: bool) -> None:
    assert changes_one_place(claim, sentence) == is_one


def test_a_claim_that_only_leaves_out_words_changes_nothing() -> None:
    sentence = "Kessler did not deny that animals feel pain; she denied that they can know it, and so cannot despair."
    assert changes_nothing("Kessler did not deny that animals feel pain.", sentence)
    assert changes_nothing("Ada was born in Bergen.", "She was born in Bergen in 1932.")
    assert not changes_nothing("Kessler did deny that plants feel pain.", sentence)


@pytest.mark.parametrize(
    ("claim", "sentence", "is_dropped"),
    [
        ("Libya is the largest country in Africa.", "Libya is the fourth largest country in Africa.", True),
        ("It is the most visited park.", "It is the 3rd most visited park.", True),
        ("It is the largest and oldest city.", "It is the second largest and oldest city.", True),
        ("It is the second largest city.", "It is the second largest city of Chad.", False),
        ("The river is the longest.", "The river is the longest after the second war.", False),
        ("It is the best bridge.", "It is the best bridge, on the second street.", False),
    ],
)
def test_the_rank_of_a_superlative_is_not_left_out(claim: str, sentence: str, is_dropped: bool) -> None:
    assert drops_a_rank(claim, sentence) is is_dropped


@pytest.mark.parametrize(
    ("claim", "sentence", "is_dropped"),
    [
        ("Dogs are not admitted.", "Dogs are not admitted, apart from guide dogs.", True),
        ("Drink a litre a day.", "Drink a litre a day, unless you were told not to.", True),
        ("They agreed to plant trees.", "They agreed to plant trees by March, subject to a survey.", True),
        ("The hall is open.", "Except on Mondays, the hall is open.", True),
        ("Members may bring guests.", "Members, unless suspended, may bring guests.", True),
        ("Dogs are not admitted, apart from guide dogs.", "Dogs are not admitted, apart from guide dogs.", False),
        ("Tickets cost £7.", "Tickets cost £7, and dogs are not admitted, apart from guide dogs.", False),
        ("Meals were provided.", "Meals were provided by the inn.", False),
        ("She taught the subject.", "She taught the subject in Oslo.", False),
    ],
)
def test_an_exception_is_not_left_out(claim: str, sentence: str, is_dropped: bool) -> None:
    assert drops_an_exception(claim, sentence) is is_dropped
