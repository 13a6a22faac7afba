"""Whether a claim says its numbers of what the evidence says them of."""

import pytest

from ewe.verification.number_places import moves_a_number

ALLOWANCE = "The allowance is 48 EUR inside the country and 65 EUR abroad."
FEES = "Members pay 45 pounds a year; students pay 20 pounds."
LEAVE = "Employees with 2 years get 25 days and those with 5 years get 28 days."
BUSES = "Line 7 runs every 20 minutes and line 9 every 35 minutes."
NITRATE = "Nitrate averaged 11 mg/l; the limit is 50 mg/l."
PROFIT = "Operating profit fell to EUR 3.1 million because of higher prices."
WARRANTY = "The standard warranty is two years; the extended warranty is five years."
LICENCE = "The licence costs USD 40 per user and month."
REVENUE = "Revenue rose by 12 percent to EUR 48.3 million in 2024."


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The allowance is 65 EUR inside the country and 48 EUR abroad.", ALLOWANCE),
        ("Students pay 45 pounds.", FEES),
        ("Employees with 2 years get 28 days.", LEAVE),
        ("Line 9 runs every 20 minutes.", BUSES),
        ("Nitrate averaged 50 mg/l.", NITRATE),
        ("A ticket costs €12 for students.", "A ticket costs €12 for adults and €8 for students."),
        ("She scored 20 goals in 14 games.", "She scored 14 goals in 20 games."),
        ("The mill was built in 1932.", "The mill was built between 1930 and 1932."),
        ("The tower is 40 feet high.", "The tower is about 300 feet high and 40 feet wide."),
        ("It survives 28 °C.", "It survives -28 °C."),
        ("It survives 28 °C.", "It survives minus 28 °C."),
        ("It has a range of 22 miles.", "It has a range of 22 nautical miles."),
        ("It costs 6.3 euros a year.", "It costs 6.3 million euros a year."),
        ("A ticket costs $12.", "A ticket costs €12."),
        ("Lunch costs NOK 65.", "Lunch costs EUR 65."),
        ("Operating profit fell by EUR 3.1 million because of higher prices.", PROFIT),
        ("Operating profit fell from EUR 3.1 million because of higher prices.", PROFIT),
        ("Revenue rose to 12 percent by EUR 48.3 million in 2024.", REVENUE),
        ("Revenue rose by 12 percent from EUR 48.3 million in 2024.", REVENUE),
        ("The staff grew to 389.", "The staff grew from 389 to 412."),
        ("The staff grew by 389 to 412.", "The staff grew from 389 to 412."),
        ("The staff grew to 12.", "The staff grew 12."),
        ("Guests may claim from EUR 140.", "Guests may claim up to EUR 140."),
        ("It charges for 25 minutes.", "It charges in 25 minutes."),
        ("The standard warranty is five years.", WARRANTY),
        ("The licence costs USD 40.", LICENCE),
        ("The licence costs USD 40 per month.", LICENCE),
        ("Send it after 30 days after the trip.", "Send it within 30 days after the trip."),
        ("They plant forty oaks.", "They plant forty trees, mostly oaks."),
        ("The island has 83 children.", "The island has 83 inhabitants, 12 of whom are children."),
        ("On Sundays the ferry leaves at 21:40.", "The ferry leaves at 21:40, on Sundays at 19:15."),
        ("The staff grew to 20.", "The staff grew from 12 to 18 and the fleet to 20."),
    ],
)
def test_a_number_of_something_else(claim: str, evidence: str) -> None:
    assert moves_a_number(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        *((text, text) for text in (ALLOWANCE, FEES, LEAVE, BUSES, NITRATE, PROFIT, WARRANTY, LICENCE)),
        ("Revenue rose by 12 percent to about €48.3 million.", REVENUE),
        ("Revenue rose 12 percent.", "Revenue rose by 12 percent."),
        ("A ticket costs JPY 40.", "A ticket costs ¥40."),
        ("The extended warranty is five years.", WARRANTY),
        ("The licence costs USD 40 per user.", LICENCE),
        ("He worked there from 1998 to 2001.", "He worked there between 1998 and 2001."),
        ("It lasted for ten years.", "It lasted ten years."),
        ("She won during 1999 and 2001.", "She won in 1998, 1999 and 2001."),
        ("Students pay 20 pounds.", FEES),
        ("The limit is 50 mg/l.", NITRATE),
        ("The allowance is €65 abroad.", "The allowance abroad is 65 euros."),
        ("She won in 1999.", "She won in 1998, 1999 and 2001."),
        ("The mill moved to Oslo in 1932.", "In 1932 the mill moved to Oslo."),
        ("The mill was sold in 1930.", "The mill was bought in 1921 and sold in 1930."),
        ("It has three ovens and 1,200 tiles.", "It has 3 ovens and 1200 tiles."),
        ("It has one tower.", "It has a tower."),
        ("It survives -28 °C.", "It survives −28 °C."),
        ("It covers the years 1990-1994.", "It covers the years 1990–1994."),
        ("The firm has 143 employees.", "The firm has 143 employees and exports to 19 countries."),
        ("They plant forty trees.", "They plant forty new trees, mostly oaks."),
        ("In 1953 the workers left the mill.", "In 1953 workers of the mill left."),
        ("The ferry leaves at 21:40.", "The ferry leaves at 21:40, on Sundays at 19:15."),
        ("The limit was lowered to 60 requests.", "The limit was lowered from 120 to 60 requests."),
        ("The share fell to 49 per cent.", "The share fell by 12 per cent to 49 per cent."),
        ("She was mayor until 1968.", "She was mayor from 1961 until 1968."),
        ("No number at all.", "Nothing here."),
    ],
)
def test_a_number_of_the_same(claim: str, evidence: str) -> None:
    assert not moves_a_number(claim, evidence)
