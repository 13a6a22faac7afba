"""The trace page in a real browser: what a reader sees, hovers and tabs to. Skipped where no Chromium is installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium_rig import all_of, complaints, expect_readable, find, hover, keys, show_as
from contrast import ratio
from show_fixture import HOSTILE, PASSAGES, PROMPT, generation
from test_trace_page import hostile

from ewe.evaluation.report import write_page


@pytest.fixture
def browser(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """The browser on the page of the recorded run; at the end the console must be empty."""
    open_page(chromium, tmp_path / "page.html", generation(), generation("Another prompt", attribution=False))
    yield chromium
    show_as(chromium)
    assert complaints(chromium) == []


def open_page(driver: Any, path: Path, *generations: Any) -> None:
    write_page(path, generations)
    driver.get(path.as_uri())


def evidence(browser: Any) -> str:
    return str(find(browser, "#evidence").text)


def test_the_answer_stands_there_with_a_mark_per_sentence(browser: Any) -> None:
    assert find(browser, "#prompt").text == PROMPT
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#text .sentence')].map((node) => node.firstChild.textContent)"
    )
    assert shown == [sentence.text for sentence in generation().sentences]
    assert [node.text for node in all_of(browser, "#text .mark")] == ["✓", "✓", "✓", "✓", "?", "–"]
    styles = [node.value_of_css_property("text-decoration-style") for node in all_of(browser, "#text .sentence")]
    assert styles == ["solid"] * 4 + ["dashed", "dotted"]
    assert not find(browser, "noscript").is_displayed()


def test_hovering_a_sentence_shows_its_evidence(browser: Any) -> None:
    hover(browser, all_of(browser, "#text .sentence")[2])
    assert "SENTENCE 3 OF 6" in evidence(browser)
    assert "1963 Mirela Hask" in evidence(browser)
    assert "Prize register" in evidence(browser)
    assert "veracity 0.80" in evidence(browser)
    hover(browser, all_of(browser, "#text .sentence")[5])
    assert "the verifier timed out" in evidence(browser)
    assert "Prize register" not in evidence(browser)


def test_the_keyboard_reaches_sentences_pins_them_and_lets_go(browser: Any) -> None:
    browser.execute_script("arguments[0].focus()", all_of(browser, "#text .sentence")[2])
    assert "SENTENCE 3" in evidence(browser)
    keys(browser, "\ue007")  # Enter
    assert all_of(browser, "#text .sentence")[2].get_attribute("aria-pressed") == "true"
    keys(browser, "\ue004")  # Tab
    assert "SENTENCE 4" in evidence(browser)
    browser.execute_script("document.activeElement.blur()")
    assert "SENTENCE 3" in evidence(browser)
    keys(browser, "\ue00c")  # Escape
    assert all_of(browser, "#text .sentence")[2].get_attribute("aria-pressed") == "false"


def test_removed_wordings_open_one_by_one_and_together(browser: Any) -> None:
    removed = all_of(browser, "#text del")
    assert [node.is_displayed() for node in removed] == [False, False]
    all_of(browser, "#text .rewritten")[1].click()
    assert [node.is_displayed() for node in removed] == [False, True]
    assert removed[1].text == "She won the Larch Prize in 1961."
    assert "line-through" in removed[1].value_of_css_property("text-decoration-line")
    find(browser, "#show-removed").click()
    assert [node.is_displayed() for node in removed] == [True, True]


def test_the_lanes_show_which_unit_sat_where(browser: Any) -> None:
    bars = {}
    for node in all_of(browser, "#timeline .unit"):
        box = node.find_element("css selector", "rect").rect
        bars[node.get_attribute("aria-label")] = (box["x"], box["y"], box["width"])
    assert len(bars) == 7
    rumours = next(box for name, box in bars.items() if "Rumours" in name)
    hask = next(box for name, box in bars.items() if "verification unit: Mirela Hask" in name)
    assert rumours[2] / hask[2] == pytest.approx(90 / 126, abs=0.02)
    assert hask[1] > rumours[1]
    assert len(all_of(browser, "#timeline .withdrawn")) == 2
    hover(browser, next(n for n in all_of(browser, "#timeline .unit") if "Rumours" in n.get_attribute("aria-label")))
    tip = find(browser, "#tip")
    assert tip.is_displayed()
    assert PASSAGES["p5"].text in tip.text
    assert "weight 0.20" in tip.text
    assert "from token 0 to token 90" in tip.text


def test_hovering_a_sentence_marks_its_units(browser: Any) -> None:
    hover(browser, all_of(browser, "#text .sentence")[1])
    linked = [node.get_attribute("data-passage") for node in all_of(browser, "#timeline .unit.linked")]
    assert linked == ["p2"]


def test_attention_bars_are_as_long_as_their_shares(browser: Any) -> None:
    cards = all_of(browser, "#shares .share")
    assert len(cards) == 5
    widths = [bar.rect["width"] for bar in cards[0].find_elements("css selector", ".bar-fill")]
    track = cards[0].find_element("css selector", ".bar-track").rect["width"]
    assert [width / track for width in widths] == pytest.approx([0.41, 0.08, 0.02, 0.49], abs=0.02)


def test_events_can_be_opened_and_filtered(browser: Any) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    rows = all_of(browser, "#event-list .event")
    assert len(rows) == len(generation().trace)
    place = next(place for place, event in enumerate(generation().trace) if event.kind == "retrieval")
    browser.execute_script("arguments[0].scrollIntoView()", rows[place])
    rows[place].find_element("css selector", "summary").click()
    # The browser reports the opening after the click, when it gets to it.
    [data] = WebDriverWait(browser, 20).until(lambda _: rows[place].find_elements("css selector", "pre"))
    assert '"latency_s": 0.012' in data.text
    find(browser, "#filters button").click()
    assert not rows[0].is_displayed()
    assert rows[1].is_displayed()


def test_another_answer_can_be_chosen(browser: Any) -> None:
    which = find(browser, "#which")
    which.find_elements("css selector", "option")[1].click()
    assert find(browser, "#prompt").text == "Another prompt"
    assert not find(browser, "#attention").is_displayed()


def test_links_lead_to_web_addresses_only(browser: Any) -> None:
    sentences = all_of(browser, "#text .sentence")
    hover(browser, sentences[1])
    assert [link.get_attribute("href") for link in all_of(browser, "#evidence a")] == ["https://example.org/tides"]
    hover(browser, sentences[2])
    assert all_of(browser, "#evidence a") == []
    assert "javascript:alert(1)" in evidence(browser)


def test_a_phone_gets_one_column_and_the_evidence_as_a_sheet(browser: Any) -> None:
    show_as(browser, width=390)
    browser.refresh()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    sheet = find(browser, "#evidence")
    assert not sheet.is_displayed()
    sentence = all_of(browser, "#text .sentence")[2]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", sentence)
    sentence.click()
    assert sheet.is_displayed()
    assert sheet.rect["width"] == 390
    find(browser, "#close").click()
    assert not sheet.is_displayed()


def same_titles() -> Any:
    """The recorded run, in which all passages have one title."""
    recorded = generation()
    sources = {key: replace(passage, title="Mirela Hask") for key, passage in recorded.sources.items()}
    trace = tuple(
        replace(event, data={**event.data, "passage": {**event.data["passage"], "title": "Mirela Hask"}})
        if event.kind == "refresh"
        else event
        for event in recorded.trace
    )
    return replace(recorded, sources=sources, trace=trace)


def test_units_of_one_title_are_told_apart(chromium: Any, tmp_path: Path) -> None:
    show_as(chromium)
    open_page(chromium, tmp_path / "page.html", same_titles())
    ids = {node.get_attribute("data-passage"): node.get_attribute("aria-label") for node in units(chromium)}
    named = {label.split(": ")[1].split(", from")[0] for label in ids.values()}
    assert named == {f"Mirela Hask ({number})" for number in range(1, len(ids) + 1)}
    hover(chromium, all_of(chromium, "#text .sentence")[2])
    proofs = {node.get_attribute("data-passage"): node.text for node in all_of(chromium, "#evidence .proof")}
    assert all(ids[key].split(": ")[1].split(", from")[0] in text for key, text in proofs.items())


def units(browser: Any) -> list[Any]:
    return all_of(browser, "#timeline .unit")


def test_the_timeline_can_be_read_and_touched_on_a_phone(browser: Any) -> None:
    show_as(browser, width=390)
    browser.refresh()
    host = find(browser, "#timeline")
    assert browser.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", host)
    edge = host.rect["x"] + host.rect["width"]
    assert all(node.rect["x"] + node.rect["width"] <= edge + 25 for node in units(browser))
    for node in (*units(browser), *all_of(browser, "#timeline summary")):
        assert node.rect["height"] >= 24
        assert node.rect["width"] >= 24
    shown = [node.find_element("css selector", "text").text for node in units(browser)]
    listed = [node.text.split("\n") for node in all_of(browser, "#timeline summary")]
    assert len(listed) == len({node.get_attribute("data-passage") for node in units(browser)})
    assert {text.split()[0] for text in shown} == {line[0].split()[0] for line in listed}
    assert "Rumours" in " ".join(line[0] for line in listed)
    rumours = next(node for node in all_of(browser, "#timeline summary") if "Rumours" in node.text)
    assert "from token 0 to token 90" in rumours.text
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", rumours)
    rumours.click()
    assert PASSAGES["p5"].text in find(browser, "#timeline details[open]").text


def test_labels_can_be_read_on_their_bars(browser: Any) -> None:
    for scheme in ("light", "dark"):
        show_as(browser, scheme=scheme)
        painted = browser.execute_script(BARS)
        assert len(painted) == 13
        assert min(map(ratio, painted)) >= 4.5, scheme


# The colours of every label on the timeline and of the bar behind it.
BARS = """
const paint = (color) => {
  const context = new OffscreenCanvas(1, 1).getContext('2d');
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
};
return [...document.querySelectorAll('#timeline .bar-body + text')].filter((text) => text.textContent).map((text) =>
  [paint(getComputedStyle(text).fill), paint(getComputedStyle(text.previousElementSibling).fill)]);
"""

WHY_EMPTY = [
    ("stop", 0, "The model ended at once", "min_tokens"),
    ("stop", 12, "Every sentence was refuted and left out", "on_exhausted"),
    ("length", 0, "It came to max_tokens", "larger max_tokens"),
    ("timeout", 0, "The deadline passed", "deadline_s"),
    ("error", 0, "No sentence was finished", "log"),
]


@pytest.mark.parametrize(("reason", "discarded", "why", "advice"), WHY_EMPTY)
def test_an_empty_answer_says_why_and_what_to_try(
    chromium: Any, tmp_path: Path, reason: str, discarded: int, why: str, advice: str
) -> None:
    recorded = generation()
    stats = replace(recorded.stats, tokens_discarded=discarded)
    error = "out of memory" if reason == "error" else ""
    empty = replace(recorded, text=" ", sentences=(), finish_reason=reason, error=error, stats=stats)
    open_page(chromium, tmp_path / "empty.html", empty)
    told = find(chromium, "#text .empty").text
    assert why in told
    assert advice in told


def test_dark_and_light_are_both_readable(browser: Any) -> None:
    expect_readable(
        browser, "#prompt", "#evidence .badge", "#timeline .lane-name", ".note", ".kind-rewind", "#text .mark"
    )


def test_hostile_texts_run_nothing(chromium: Any, tmp_path: Path) -> None:
    open_page(chromium, tmp_path / "hostile.html", hostile(), generation())
    for sentence in all_of(chromium, "#text .sentence"):
        hover(chromium, sentence)
    for summary in all_of(chromium, "summary"):
        chromium.execute_script("arguments[0].parentElement.open = true", summary)
    for unit in all_of(chromium, "#timeline .unit"):
        hover(chromium, unit)
    assert chromium.execute_script("return window.hacked") is None
    assert chromium.execute_script("return document.querySelectorAll('img').length") == 0
    assert HOSTILE.split("\x1b")[0].strip() in find(chromium, "#prompt").text
    assert complaints(chromium) == []
