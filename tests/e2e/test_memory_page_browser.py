"""The page of one memory in a real browser. Skipped where no Chromium is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium_rig import all_of, complaints, expect_readable, find, hover, keys, show_as
from memory_fixture import CONTENT, contradictions, hostile, memory, revisions
from show_fixture import HOSTILE

from ewe.evaluation.report import write_memory_page

RIGHT, LEFT, HOME, END, ENTER, ESCAPE = "\ue014", "\ue012", "\ue011", "\ue010", "\ue007", "\ue00c"


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """The browser on the page of a memory with seven revisions; at the end the console must be empty."""
    open_page(chromium, tmp_path / "memory.html", memory(), revisions(), contradictions())
    yield chromium
    show_as(chromium)
    assert complaints(chromium) == []


def open_page(driver: Any, path: Path, *content: Any) -> None:
    write_memory_page(path, *content)
    driver.get(path.as_uri())


def history(browser: Any) -> list[str]:
    return [node.text for node in all_of(browser, "#revisions .revision")]


def focused(browser: Any) -> Any:
    return browser.execute_script("return document.activeElement.dataset.index ?? document.activeElement.id")


def click(browser: Any, node: Any) -> None:
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
    node.click()


def test_the_memory_and_how_far_it_is_believed_stand_at_the_top(page: Any) -> None:
    assert find(page, "#content").text == CONTENT
    chips = [node.text for node in all_of(page, "#chips .chip")]
    assert chips == ["fact", "user ann", "user ann, reliability 0.70", "wrong"]
    meters = [node.text.split("\n") for node in all_of(page, ".meter")]
    assert [line for line in meters[0] if line] == ["veracity", "0.10", "most likely false"]
    assert meters[1][:2] == ["uncertainty", "0.20"]
    widths = [node.rect["width"] / find(page, ".meter-track").rect["width"] for node in all_of(page, ".meter-fill")]
    assert widths == pytest.approx([0.1, 0.2], abs=0.01)
    facts = find(page, "#facts").text
    assert all(part in facts for part in ("3 times", "2025-10-09 08:53:20", "last confirmed", "place", "Orvane"))
    assert not find(page, "noscript").is_displayed()


def test_every_revision_has_reason_scores_and_evidence_the_newest_first(page: Any) -> None:
    shown = history(page)
    assert len(shown) == 7
    assert shown[0].split("\n")[:3] == ["7.", "a reason of its own", "2026-01-07 08:53:20"]
    assert "▼ 0.14 → 0.10 · uncertainty 0.20" in shown[0]
    assert "heard it" in shown[0]
    assert "said before: The bridge of Orvane is old." in shown[0]
    assert "passage enc-1\npassage register" in shown[1]
    assert "= 0.40 → 0.40" in shown[2]
    assert "another memory contradicts it" in shown[4]
    assert "böb (user) said that it is correct" in shown[5]
    assert "▲ 0.70 → 0.85" in shown[5]
    assert "= 0.70 · uncertainty not written down" in shown[6]


def test_the_chart_has_both_scores_at_their_heights(page: Any) -> None:
    heights = page.execute_script(
        "return [...document.querySelectorAll('#chart .mark-veracity')].map((node) => Number(node.getAttribute('cy')))"
    )
    top, bottom = (page.execute_script(
        "return Number([...document.querySelectorAll('#chart .grid')].at(arguments[0]).getAttribute('y1'))", place
    ) for place in (-1, 0))  # fmt: skip
    found = [(bottom - height) / (bottom - top) for height in heights]
    assert found == pytest.approx([revision["veracity_after"] for revision in revisions()], abs=0.01)
    assert len(all_of(page, "#chart .mark-uncertainty")) == 6  # the first was not written down
    line = find(page, "#chart .line-uncertainty").get_attribute("d")
    assert (line.count("M"), line.count("H")) == (1, 5)
    assert find(page, "#chart .line-veracity").get_attribute("d").count("H") == 6
    assert len(all_of(page, "#chart .reason-contradicted")) == 1


def test_pointing_at_a_step_tells_it_and_a_click_leads_to_its_entry(page: Any) -> None:
    step = all_of(page, "#chart .moment")[3]
    hover(page, step)
    assert find(page, "#tip").text.startswith("4. 2025-10-15 08:53:20, checked with a text that used it")
    assert "veracity 0.40, uncertainty 0.80" in find(page, "#tip").text
    step.click()
    assert focused(page) == "3"
    assert find(page, "#revision-4").get_attribute("class") == "revision chosen"
    keys(page, ESCAPE)
    assert not all_of(page, ".chosen")


def test_the_keyboard_goes_through_the_chart(page: Any) -> None:
    page.execute_script("document.querySelector('#chart .moment[tabindex=\"0\"]').focus()")
    seen = [focused(page)]
    for key in (LEFT, LEFT, RIGHT, HOME, LEFT, END):
        keys(page, key)
        seen.append(focused(page))
    assert seen == ["6", "5", "4", "5", "0", "0", "6"]
    assert len(all_of(page, '#chart .moment[tabindex="0"]')) == 1
    assert "veracity 0.10" in all_of(page, "#chart .moment")[6].get_attribute("aria-label")
    keys(page, LEFT)
    keys(page, ENTER)
    assert page.execute_script("return document.activeElement.id") == "revision-6"


def test_contradictions_are_linked_both_ways(page: Any) -> None:
    first, second = [node.text for node in all_of(page, "#contradictions .claim")]
    assert "opened in 1932." in first
    assert "veracity 0.90 · uncertainty 0.21 · document almanac, reliability 0.90 · shared by everybody" in first
    assert "No longer there" in second
    [to_memory] = all_of(page, "#revisions a")
    assert re.search(r"#against-0$", to_memory.get_attribute("href"))
    [to_revision] = all_of(page, "#contradictions a")
    click(page, to_revision)
    assert page.execute_script("return location.hash") == "#revision-3"
    assert "chosen" in find(page, "#revision-3").get_attribute("class")
    click(page, to_memory)
    assert page.execute_script("return location.hash") == "#against-0"


def test_a_long_history_comes_in_two_parts_and_scrolls_in_its_chart(chromium: Any, tmp_path: Path) -> None:
    many = [{**revisions()[number % 7], "number": number + 1} for number in range(300)]
    open_page(chromium, tmp_path / "long.html", memory(), many, [])
    assert len(history(chromium)) == 100
    assert not find(chromium, "#against").is_displayed()
    assert chromium.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert chromium.execute_script("const c = document.getElementById('chart'); return c.scrollWidth > c.clientWidth")
    more = find(chromium, "#show-all")
    assert more.text == "Show 200 older ones"
    click(chromium, more)
    assert len(all_of(chromium, "#revisions .revision")) == 300
    assert not more.is_displayed()


def test_a_single_revision_and_a_phone(chromium: Any, tmp_path: Path) -> None:
    show_as(chromium, width=390)
    try:
        for count in (1, 7):
            content = "w" * 300 if count == 1 else CONTENT
            open_page(
                chromium, tmp_path / f"{count}.html", memory(content=content), revisions()[:count], contradictions()
            )
            assert len(all_of(chromium, "#chart .mark-veracity")) == count
            assert chromium.execute_script("return document.documentElement.scrollWidth") <= 390
            assert all("NaN" not in node.get_attribute("d") for node in all_of(chromium, "#chart path"))
    finally:
        show_as(chromium)
    assert complaints(chromium) == []


def test_dark_and_light_are_both_readable(page: Any) -> None:
    expect_readable(
        page,
        "#content",
        ".chip",
        ".meter-value",
        "#chart text",
        ".revision-time",
        ".change.v-refuted",
        ".change.v-supported",
        ".revision-evidence li",
        "#contradictions a",
        ".chart-key li",
    )


def test_hostile_memories_run_nothing_and_link_nowhere(chromium: Any, tmp_path: Path) -> None:
    open_page(chromium, tmp_path / "hostile.html", *hostile(HOSTILE))
    assert HOSTILE.split("\x1b")[0].strip() in find(chromium, "#content").text
    hover(chromium, all_of(chromium, "#chart .moment")[2])
    links = {link.get_attribute("href").split("#")[1] for link in all_of(chromium, "main a")}
    assert links <= {"against-0", *(f"revision-{number}" for number in range(1, 8))}
    assert chromium.execute_script("return window.hacked") is None
    assert chromium.execute_script("return document.querySelectorAll('img, main script').length") == 0
    assert complaints(chromium) == []
