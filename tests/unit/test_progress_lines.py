"""What a long run says of itself where there is no bar, and of the time it will take."""

from __future__ import annotations

import pytest

from ewe.cli.progress_lines import Pace, counted_progress, duration


class Clock:
    """A clock that stands until it is told the time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_line_comes_every_five_seconds_with_the_time_that_is_left():
    clock = Clock()
    pace, told = Pace(20, clock=clock), []
    for clock.now in (2.0, 4.0, 6.0, 8.0, 10.0, 12.0):
        pace.count()
        told.append(pace.line("qa"))
    assert told == ["", "", "qa: 3 of 20, about 34 s left", "", "", "qa: 6 of 20, about 28 s left"]


def test_the_first_answer_says_what_the_others_take():
    clock = Clock()
    pace = Pace(10, done=1, clock=clock)
    clock.now = 30.0
    pace.count()
    assert pace.estimate(8) == "about 4 min for 8 more, if they take as long as the first"
    assert pace.estimate(8, first_s=2.0) == "about 16 s for 8 more, if they take as long as the first"
    assert pace.estimate(0) == ""
    assert pace.estimate(8, first_s=0.1) == ""
    pace.count()
    assert pace.estimate(7) == ""


def test_lines_go_to_standard_error_where_there_is_no_terminal(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(Pace.__init__, "__defaults__", (0, clock))
    with counted_progress("answers", 10, others=9) as advance:
        for clock.now in (10.0, 20.0):
            advance("answers, ewe")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "ewe: about 90 s for 9 more, if they take as long as the first".replace("90 s", duration(90)),
        "ewe: answers, ewe: 2 of 10, about 80 s left",
    ]


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (89, "89 s"), (150, "2 min"), (9000, "2.5 h")])
def test_durations_are_short(seconds, words):
    assert duration(seconds) == words
