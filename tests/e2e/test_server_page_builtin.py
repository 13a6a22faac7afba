"""The web page on the real server with the built-in model: it shows what the engine says, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from page_rig import chromium, patient, visiting
from playwright.sync_api import expect
from server_rig import PROMPT, serving, wait_until_idle

from ewe import LLM, SamplingParams
from ewe.evaluation.world.builtin import example_prompts
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings
from ewe.types import Generation

KEY = "a key of letters"
LENGTH = 100  # tokens of an answer: enough for two sentences that are written again
SIGNS = {"supported": "✓", "refuted": "✗", "inconclusive": "?", "not_checked": "–"}


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM("builtin") as running:
        yield running


@pytest.fixture(scope="module")
def opened(llm: LLM) -> Iterator[tuple[Any, str]]:
    """A tab, and the address of a server with a key, which the browser sends as a password."""
    app = create_app(llm, ServerSettings(api_key=KEY))
    with serving(app) as url, chromium() as browser:
        context = browser.new_context(http_credentials={"username": "me", "password": KEY})
        script = f"localStorage['ewe-page-settings'] = JSON.stringify({{pace: '0', max_tokens: {LENGTH}}})"
        context.add_init_script(script)
        assert context.request.get(f"{url}/", headers={"authorization": "Basic bm86bm8="}).status == 401
        yield patient(context.new_page()), f"{url}/"


@pytest.fixture
def page(opened: tuple[Any, str]) -> Iterator[Any]:
    """The page; at the end the console is empty."""
    tab, url = opened
    with visiting(tab, url) as complaints:
        expect(tab.locator("#ready")).to_have_text("ready")
        yield tab
    assert complaints == []


def ask(page: Any, prompt: str) -> None:
    page.locator("#prompt-input").fill(prompt)
    page.locator("#send").click()
    expect(page.locator("#prompt")).to_have_text(prompt)
    expect(page.locator("#tools")).to_be_visible()


def written(llm: LLM, prompt: str) -> Generation:
    return llm.chat([{"role": "user", "content": prompt}], SamplingParams(max_tokens=LENGTH))[0]


def shown(page: Any) -> list[str]:
    script = "[...document.querySelectorAll('#text .sentence')].map((node) => node.firstChild.textContent)"
    return list(page.evaluate(script))


def test_it_shows_what_the_engine_writes(page: Any, llm: LLM) -> None:
    assert page.locator("#model").inner_text() == "builtin"
    assert page.locator("#examples button").all_inner_texts() == example_prompts()
    expected = written(llm, PROMPT)
    ask(page, PROMPT)
    assert shown(page) == [sentence.text for sentence in expected.sentences]
    signs = [SIGNS[sentence.verdict] for sentence in expected.sentences]
    assert page.locator("#text .mark").all_inner_texts() == signs
    kept = {wording for sentence in expected.sentences for wording in sentence.removed}
    assert kept <= set(page.locator("#text del").all_text_contents())
    refreshes = [event for event in expected.trace if event.kind == "refresh"]
    assert page.locator("#timeline .unit").count() >= len(refreshes)
    rewinds = [event for event in expected.trace if event.kind == "rewind"]
    assert rewinds
    assert page.locator("#timeline .withdrawn").count() == len(rewinds)
    assert not page.locator("#alarm").is_visible()


def test_the_length_of_the_answer_is_a_setting(page: Any) -> None:
    page.locator("#settings-toggle").click()
    page.locator("#set-max_tokens").fill("5")
    ask(page, "Tell me about Trunald Rerstone.")
    assert "5 tokens" in page.locator("#chips").inner_text()
    assert "cut at max_tokens" in page.locator("#chips").inner_text()


def test_a_text_is_checked_by_the_real_verifier(page: Any) -> None:
    page.get_by_text("Check a text").click()
    page.locator("#prompt-input").fill(
        "Nurim Nurner was born in 1801 in Tenford. Nurim Nurner was born in 1899 in Bremford."
    )
    page.locator("#send").click()
    expect(page.locator("#answer-title")).to_have_text("Checked text")
    assert page.locator("#text .mark").all_inner_texts() == ["✓", "✗"]
    page.locator("#text .sentence").first.focus()
    assert "Tenford" in " ".join(page.locator("#evidence .proof").all_inner_texts())


def test_stopping_frees_the_engine(page: Any, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    core = llm.client.engine.core
    step = core.step
    monkeypatch.setattr(core, "step", lambda: (time.sleep(0.2), step())[1])  # the answer is not over before the click
    page.locator("#prompt-input").fill("Describe the life of Celim Thoscroft.")
    page.locator("#send").click()
    expect(page.locator("#text .draft")).not_to_be_empty()
    page.locator("#stop").click()
    expect(page.locator("#tools")).to_be_visible()
    wait_until_idle(llm)
