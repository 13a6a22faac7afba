"""Which time a question asks about, and times as callers give them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from ewe.errors import InvalidRequestError
from ewe.longterm.query_time import Period, query_period, seconds

NOW = datetime(2025, 6, 18, 12, tzinfo=UTC).timestamp()  # a Wednesday


def shown(period: Period | None) -> str:
    """Begin and end as days; empty where they are open."""
    if period is None:
        return "now"
    sides = (period.begin, period.end)
    return " to ".join("" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in sides)


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("Where did I live in 2024?", "2024-01-01 to 2025-01-01"),
        ("Where did Ann live in May 2024?", "2024-05-01 to 2024-06-01"),
        ("Where was I in December 2023?", "2023-12-01 to 2024-01-01"),
        ("Where was I on 3 May 2024?", "2024-05-03 to 2024-05-04"),
        ("Where was I on May 3rd, 2024?", "2024-05-03 to 2024-05-04"),
        ("Where was I on 2024-05-03?", "2024-05-03 to 2024-05-04"),
        ("Where have I lived since 2023?", "2023-01-01 to "),
        ("Where have I lived since 2023-04?", "2023-04-01 to "),
        ("What did I do before May 2024?", " to 2024-05-01"),
        ("What did I do after 2023?", "2024-01-01 to "),
        ("Where did I live between 2019 and 2021?", "2019-01-01 to 2022-01-01"),
        ("Where did I live last year?", "2024-01-01 to 2025-01-01"),
        ("What was my job last month?", "2025-05-01 to 2025-06-01"),
        ("Where was I last week?", "2025-06-09 to 2025-06-16"),
        ("Where was I yesterday?", "2025-06-17 to 2025-06-18"),
        ("Where did I live two years ago?", "2023-06-19 to 2023-06-19"),
        ("Where did I use to live, and where have I used to work?", " to 2025-06-18"),
        ("Where did I live before?", " to 2025-06-18"),
        ("Where did I live before Bergen?", " to 2025-06-18"),
        ("What was my job before I moved to Bergen?", " to 2025-06-18"),
        ("Where'd I live before Bergen?", " to 2025-06-18"),
        ("Who taught Otis before Mr Duquette?", " to 2025-06-18"),
        ("What car did I have?", " to 2025-06-18"),
        ("Who was my landlord?", " to 2025-06-18"),
        ("Who is my previous boss?", " to 2025-06-18"),
        ("What is my ex called?", " to 2025-06-18"),
        ("Where is my old school?", " to 2025-06-18"),
        ("How old is my brother?", "now"),
        ("When did I move to Bergen?", "now"),
        ("What did the doctor say?", "now"),
        ("What happened to my bike, and was it stolen?", "now"),
        ("What do I have to do before?", "now"),
        ("What do I have to do before lunch?", "now"),
        ("Where do I live?", "now"),
        ("Do I still owe 2000 euros?", "now"),
        ("Where was I on 31 February 2024?", " to 2025-06-18"),
        ("May I march in May?", "now"),
    ],
)
def test_the_time_that_a_question_asks_about(question: str, period: str) -> None:
    assert shown(query_period(question, NOW)) == period


def test_a_period_meets_what_holds_for_a_part_of_it() -> None:
    year = Period(10.0, 20.0)
    assert [year.meets(*bounds) for bounds in ((None, None), (None, 10.0), (20.0, None), (19.0, 30.0))] == [
        *(True, False, False, True)
    ]
    assert [Period.at(at).meets(1.0, 2.0) for at in (0.9, 1.0, 1.9, 2.0)] == [False, True, True, False]


def test_times_as_callers_give_them() -> None:
    day = 1714521600.0
    paris = timezone(timedelta(hours=2))
    for given in (day, int(day), "2024-05-01", "20240501", "2024-05-01T00:00:00Z", "1714521600", date(2024, 5, 1)):
        assert seconds("as_of", given) == day
    assert seconds("as_of", datetime(2024, 5, 1)) == day
    assert seconds("as_of", datetime(2024, 5, 1, 2, tzinfo=paris)) == day
    for wrong in ("yesterday", "2024", "", float("nan"), True):
        with pytest.raises(InvalidRequestError, match="as_of: a time is an ISO date"):
            seconds("as_of", wrong)


def test_a_year_is_no_number_of_seconds() -> None:
    assert seconds("at", 0) == 0.0
    with pytest.raises(InvalidRequestError, match='at: 2024 is a number of seconds; of the year say "2024-01-01"'):
        seconds("at", 2024)
