"""Unit templates: what is left around empty fields."""

import pytest

from ewe.engine.units.unit_text import fill_template

ALL = {"title": "Mira", "text": "It moved.", "source": "Gazette", "date": "1987"}


def filled(template: str, *empty: str) -> str:
    return fill_template(template, ALL | dict.fromkeys(empty, ""))


@pytest.mark.parametrize(
    ("template", "empty", "expected"),
    [
        ("{title}: {text}", [], "Mira: It moved."),
        ("{title}: {text}", ["title"], "It moved."),
        ("{text}, {date}", ["date"], "It moved."),
        ("{title} ({date}): {text}", [], "Mira (1987): It moved."),
        ("{title} ({date}): {text}", ["date"], "Mira: It moved."),
        ("{title} ({date}): {text}", ["title", "date"], "It moved."),
        ("{title}({date}) {text}", ["date"], "Mira It moved."),
        ("{title} (source: {source}): {text}", ["source"], "Mira: It moved."),
        ("[{source}] {title}: {text}", ["source"], "Mira: It moved."),
        ("[{source}] {title}: {text}", ["source", "title"], "It moved."),
        ('"{title}" {text}', ["title"], "It moved."),
        ("{title} - {date}: {text}", ["date"], "Mira - It moved."),
        ("Source: {source}\n{title}: {text}", ["source"], "Mira: It moved."),
        ("{title}\n\n{text}\nSource: {source}, {date}", ["source", "date"], "Mira\n\nIt moved."),
        ("{title}\n\n{text}\nSource: {source}, {date}", ["source"], "Mira\n\nIt moved.\nSource: 1987"),
        ("A fact\n{title}\n{text}", ["title"], "A fact\nIt moved."),
        ("no fields", [], "no fields"),
    ],
)
def test_an_empty_field_takes_its_surroundings_with_it(template: str, empty: list[str], expected: str) -> None:
    assert filled(template, *empty) == expected


def test_braces_in_a_field_stay_as_they_are() -> None:
    fields = ALL | {"title": "{text} {0}", "text": "{title} {{}} \\1"}
    assert fill_template("{title}: {text}", fields) == "{text} {0}: {title} {{}} \\1"
