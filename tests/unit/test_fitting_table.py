"""Tables of figures in narrow terminals: no figure is cut or broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ewe.evaluation.tables import rich_table

TITLES = ["system", "questions", "exact", "contained", "prompt tokens", "encoded after a change"]
FIGURES = ["420", "12.3% (9.5% to 15.8%)", "45.6% (40.9% to 50.4%)", "1234", "98"]
ROWS = [["as units, k = 1", *FIGURES], ["in the prompt, with passages, k = 8", *FIGURES]]


def shown(width: int, titles: list[str], rows: list[list[str]]) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(rich_table(titles, rows, "95% intervals in brackets"))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in console.file.getvalue()
    return lines


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_every_figure_stands_whole_on_one_line(width: int) -> None:
    text = "\n".join(shown(width, TITLES, ROWS))
    for figure in FIGURES:
        assert text.count(figure) >= len(ROWS), figure
    assert "as units, k = 1" in text


def test_wide_terminals_show_titles_on_one_line_and_narrower_ones_wrap_text() -> None:
    titles, rows = TITLES[:2], [[name, count] for name, count, *_ in ROWS]
    assert any("questions" in line and "system" in line for line in shown(60, titles, rows))
    narrow = shown(30, titles, rows)
    assert any("420" in line for line in narrow)
    assert not any("in the prompt, with passages, k = 8" in line for line in narrow)


def test_many_columns_become_a_list_per_row() -> None:
    lines = shown(60, TITLES, ROWS)
    assert "system: in the prompt, with passages, k = 8" in lines
    assert any(line.split() == ["encoded", "after", "a", "change", "98"] for line in lines)
