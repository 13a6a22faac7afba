"""Lines that stand at the top or bottom of page after page: which are taken away, and which are text."""

from __future__ import annotations

import pytest

from ewe.retrieval.ingest.running_lines import without_running_lines

BODIES = ["Rivers run\nto the sea.", "All of them do.", "Lakes stay.\nMost of them.", "Wells are dug."]


def pages(top, bottom):
    """The bodies, each between the lines that `top` and `bottom` make of its page's number."""
    return ["\n".join(filter(None, (top(n), body, bottom(n)))) for n, body in enumerate(BODIES, 1)]


@pytest.mark.parametrize(
    ("top", "bottom"),
    [
        (lambda n: "Annual  Report 2024", lambda n: ""),
        (lambda n: "Annual Report 2024", lambda n: f"Page {n} of 4"),
        (lambda n: "", lambda n: f"{n + 16}"),
        (lambda n: f"{n} Chapter One", lambda n: "Confidential\n\n(c) Acme"),
        (lambda n: "Report" if n > 1 else "", lambda n: ""),
    ],
)
def test_headers_footers_and_page_numbers_go(top, bottom):
    assert [page.strip() for page in without_running_lines(pages(top, bottom))] == BODIES


def test_what_only_looks_alike_stays():
    # Numbers that do not go with the pages are a table's; two equal lines are no habit.
    found = pages(lambda n: f"Table {7 * n * n}", lambda n: f"{n * n + 3} {n}0")
    assert without_running_lines(found) == found
    twice = ["Same.\nOne.", "Same.\nTwo.", "Three.", "Four."]
    assert without_running_lines(twice) == twice
    assert without_running_lines(["Only one page."]) == ["Only one page."]


def test_equal_lines_inside_pages_stay():
    middle = ["\n".join([*before, "same", *before[::-1]]) for before in ("abc", "def", "ghi", "jkl")]
    assert without_running_lines(middle) == middle
