"""The page of checked texts in a real browser. Skipped where no Chromium is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from check_fixture import SENTENCES, checked_text
from chromium_rig import all_of, complaints, expect_readable, find, hover, keys, show_as
from show_fixture import HOSTILE
from test_check_page import long_text

from ewe.evaluation.report import write_check_page
from ewe.evaluation.report.check_page import _PART
from ewe.text.check_result import CheckedText

SCORES = {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "k": 2}


@pytest.fixture
def browser(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """The browser on the page of two texts; at the end the console must be empty."""
    open_page(chromium, tmp_path / "page.html", {"a.txt": checked_text(), "long.txt": long_text(_PART + 1)})
    yield chromium
    show_as(chromium)
    assert complaints(chromium) == []


def open_page(driver: Any, path: Path, texts: dict[str, CheckedText]) -> None:
    write_check_page(path, texts, {"a.txt": SCORES}, "a library")
    driver.get(path.as_uri())


def panel(browser: Any) -> str:
    return str(find(browser, "#evidence").text)


def rows(browser: Any) -> list[str]:
    return [node.text.split("\n")[0] for node in all_of(browser, "#claim-rows tr") if node.is_displayed()]


def test_the_text_stands_there_with_a_mark_per_sentence(browser: Any) -> None:
    assert find(browser, "#name").text == "a.txt"
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#text .sentence')].map((node) => node.firstChild.textContent)"
    )
    assert shown == list(SENTENCES)
    assert [node.text for node in all_of(browser, "#text .mark")] == ["✓", "✗", "?", "–", "–"]
    styles = [node.value_of_css_property("text-decoration-style") for node in all_of(browser, "#text .sentence")]
    assert styles == ["solid", "wavy", "dashed", "dotted", "dotted"]
    assert not find(browser, "noscript").is_displayed()


def test_the_outcome_is_counted_and_failure_is_said(browser: Any) -> None:
    outcome = find(browser, "#outcome").text
    assert "5 sentences" in outcome
    assert "✗ 1 refuted" in outcome
    assert "– 2 not checked" in outcome
    assert "4 claims" in outcome
    assert "0.667" in outcome
    chips = find(browser, "#chips").text
    assert "checked against a library" in chips
    assert "sources disagree on 1 claim" in chips
    assert find(browser, "#error").text == "The check is not complete: the endpoint is down"


def test_bars_are_as_long_as_their_shares(browser: Any) -> None:
    track = all_of(browser, ".outcome-track")[0]
    widths = [node.rect["width"] for node in track.find_elements("css selector", ".share")]
    assert [width / track.rect["width"] for width in widths] == pytest.approx([0.2, 0.2, 0.2, 0.4], abs=0.02)


def test_the_refuted_sentence_comes_first_and_pointing_shows_others(browser: Any) -> None:
    assert "SENTENCE 2" in panel(browser)
    assert "1961 Ivo Sandt, 1963 Mirela Hask" in panel(browser)
    assert "Prize register" in panel(browser)
    hover(browser, all_of(browser, "#text .sentence")[0])
    assert "SENTENCE 1" in panel(browser)
    assert "sources disagree" in panel(browser)
    places = [
        panel(browser).index(text) for text in ("born in Orvane\n", "supports 0.90", "speaks against 0.70", "in 1931\n")
    ]
    assert places == sorted(places)
    hover(browser, all_of(browser, "#text .sentence")[4])
    assert "the endpoint is down" in panel(browser)


def test_the_table_lists_claims_filters_them_and_leads_to_their_sentence(browser: Any) -> None:
    assert len(rows(browser)) == 4
    buttons = {node.text: node for node in all_of(browser, "#filters button")}
    assert list(buttons) == ["all 4", "supported 2", "refuted 1", "inconclusive 1", "disputed 1"]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", buttons["refuted 1"])
    buttons["refuted 1"].click()
    assert rows(browser) == ["Mirela Hask won the Larch Prize in 1961 ✗ refuted 0.91"]
    buttons["all 4"].click()
    assert len(rows(browser)) == 4
    all_of(browser, "#claim-rows .claim-link")[0].click()
    assert all_of(browser, "#text .sentence")[0].get_attribute("aria-pressed") == "true"
    assert "SENTENCE 1" in panel(browser)
    keys(browser, "\ue00c")  # Escape
    assert all_of(browser, "#text .sentence")[0].get_attribute("aria-pressed") == "false"


def test_a_long_text_is_read_in_parts(browser: Any) -> None:
    options = find(browser, "#which").find_elements("css selector", "option")
    assert [option.text for option in options] == ["1. a.txt", "2. long.txt (part 1 of 2)", "3. long.txt (part 2 of 2)"]
    options[2].click()
    assert len(all_of(browser, "#text .sentence")) == 1
    assert f"{_PART + 1} sentences" in find(browser, "#outcome").text
    assert f"SENTENCE {_PART + 1}" in panel(browser)
    assert find(browser, "#no-claims").is_displayed()
    assert not find(browser, "#error").is_displayed()


def test_a_phone_gets_one_column_and_the_evidence_as_a_sheet(browser: Any) -> None:
    show_as(browser, width=390)
    browser.refresh()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    sheet = find(browser, "#evidence")
    assert not sheet.is_displayed()
    all_of(browser, "#text .sentence")[1].click()
    assert sheet.is_displayed()
    find(browser, "#close").click()
    assert not sheet.is_displayed()


def test_dark_and_light_are_both_readable(browser: Any) -> None:
    expect_readable(
        browser, "#name", ".badge", "#error", ".outcome-key b", ".claim-row .claim-verdict", ".disputed", "#text .mark"
    )


def test_hostile_passages_run_nothing_and_link_nowhere(browser: Any) -> None:
    hover(browser, all_of(browser, "#text .sentence")[1])
    assert HOSTILE.split("\x1b")[0].strip() in panel(browser)
    assert [link.get_attribute("href") for link in all_of(browser, "#evidence a")] == ["https://example.org/larch"]
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
