"""The page of memories on the real routes, in a real browser: listed, searched, corrected, forgotten, never run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from page_rig import chromium, contrast, patient, visiting
from playwright.sync_api import expect
from server_rig import serving
from show_fixture import HOSTILE

from ewe.config import LongTermConfig
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.request_memories import RequestMemories
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings
from tests.unit.longterm_parts import new_store

KEY = "a key of letters"
ANN = MemorySource("user", "ann", 0.7)


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    with chromium() as browser, browser.new_context(http_credentials={"username": "me", "password": KEY}) as context:
        yield patient(context.new_page())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        opened.add([Memory("home", "Ann lives in Lyon.", scope=Scope("ann"), source=ANN, created_at=1e9, veracity=0.7)])
        opened.add([Memory("tea", "Bob likes green tea.", scope=Scope("bob", "helper"), veracity=0.6)])
        yield opened


@pytest.fixture
def page(tab: Any, store: MemoryStore) -> Iterator[Any]:
    """The page of a server with a key and these memories; at the end the console is empty."""
    app = create_app(settings=ServerSettings(api_key=KEY))
    memories = RequestMemories(MemoryService(store), LongTermConfig())
    app.state.service._served = SimpleNamespace(engine=SimpleNamespace(memories=memories))
    with serving(app) as url, visiting(tab, f"{url}/memories") as complaints:
        yield tab
        assert [text for text in complaints if "Failed to load resource" not in text] == []


def texts(page: Any) -> list[str]:
    return list(page.locator("#memories .text").all_inner_texts())


def test_memories_are_listed_with_what_is_known_of_them(page: Any) -> None:
    expect(page.locator("#memories li")).to_have_count(2)
    assert texts(page) == ["Ann lives in Lyon.", "Bob likes green tea."]
    chips = page.locator("#memories li").first.locator(".chip").all_inner_texts()
    assert chips == ["veracity 0.70", "uncertainty 1.00", "user ann", "from user:ann", "2001-09-09"]
    page.get_by_text("user bob, agent helper: 1").click()
    expect(page.locator("#memories li")).to_have_count(1)
    assert (page.locator("#user").input_value(), texts(page)) == ("bob", ["Bob likes green tea."])
    for selector in (".chip", "#memories .toggle", ".settings-panel small"):
        assert contrast(page, selector) >= 4.5, selector


def test_memories_are_searched(page: Any) -> None:
    expect(page.locator("#memories li")).to_have_count(2)
    page.locator("#user").fill("ann")
    page.locator("#query").fill("Where does Ann live?")
    page.keyboard.press("Enter")
    expect(page.locator("#memories li")).to_have_count(1)
    assert texts(page) == ["Ann lives in Lyon."]
    page.locator("#query").fill("submarine")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("Nothing is found.")


def test_a_memory_is_corrected_and_forgotten(page: Any, store: MemoryStore) -> None:
    item = page.locator("#memories li").first
    item.get_by_text("Correct").click()
    item.locator("textarea").fill("Ann lives in Paris.")
    item.get_by_text("Save").click()
    expect(item.locator(".text")).to_have_text("Ann lives in Paris.")
    assert store.history(Scope("ann"), "home")[-1].content_before == "Ann lives in Lyon."
    item.get_by_text("Forget").click()
    item.get_by_text("Keep it").click()
    assert store.find(Scope("ann"), "home") is not None
    item.get_by_text("Forget").click()
    item.get_by_text("Forget it for good").click()
    expect(page.locator("#memories li")).to_have_count(1)
    assert store.find(Scope("ann"), "home") is None


def test_long_lists_come_in_pages(page: Any, store: MemoryStore) -> None:
    store.add([Memory(f"n{number}", f"Fact {number} of many.") for number in range(60)])
    page.reload()
    expect(page.locator("#memories li")).to_have_count(50)
    page.locator("#more").click()
    expect(page.locator("#memories li")).to_have_count(62)
    expect(page.locator("#more")).to_be_hidden()


def test_what_fails_is_told(page: Any, store: MemoryStore) -> None:
    item = page.locator("#memories li").first
    item.get_by_text("Forget").click()
    store.delete(Scope("ann"), ["home"], at=0.0, reason="somebody else was faster")
    item.get_by_text("Forget it for good").click()
    expect(page.locator("#alarm")).to_contain_text("there is no memory 'home'")


def test_hostile_texts_run_nothing(page: Any, store: MemoryStore) -> None:
    attack = Memory(
        'x"><img src=x onerror=window.hacked=1>', HOSTILE, kind=HOSTILE, source=MemorySource(HOSTILE, HOSTILE),
        scope=Scope(HOSTILE, HOSTILE), created_at=1e300,
    )  # fmt: skip
    store.add([attack])
    page.reload()
    expect(page.locator("#memories li")).to_have_count(3)
    item = page.locator("#memories li").last
    item.get_by_text("Correct").click()
    assert item.locator("textarea").input_value().startswith(HOSTILE[:20])
    item.get_by_text("Save").click()
    expect(item.locator(".text")).to_be_visible()
    item.get_by_text("Forget").click()
    item.get_by_text("Forget it for good").click()
    expect(page.locator("#memories li")).to_have_count(2)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
