"""The web page in a real browser: what a reader asks, sees, points at and types. Skipped where no Chromium is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from page_rig import LONG_MS, Played, chromium, contrast, patient, visiting
from playwright.sync_api import expect
from server_rig import serving
from show_fixture import HOSTILE, PROMPT, generation

AS_IT_COMES = "localStorage['ewe-page-settings'] ??= JSON.stringify({pace: '0'})"
SENTENCES = [sentence.text for sentence in generation().sentences]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """What most tests look at, one after the other."""
    with browser.new_context(viewport={"width": 1240, "height": 1000}) as context:
        context.add_init_script(AS_IT_COMES)
        yield patient(context.new_page())


@pytest.fixture
def played() -> Iterator[Played]:
    server = Played()
    server.gate.set()
    with serving(server.app()) as url:
        server.url = f"{url}/"
        yield server
        server.gate.set()


@pytest.fixture
def page(tab: Any, played: Played) -> Iterator[Any]:
    """The page as it is opened; at the end the console must be empty."""
    with visiting(tab, played.url) as complaints:
        expect(tab.locator("#ready")).to_have_text("ready")
        yield tab
    assert [text for text in complaints if "Failed to load resource" not in text] == []


def ask(page: Any, prompt: str = PROMPT) -> None:
    page.locator("#prompt-input").fill(prompt)
    page.keyboard.press("Enter")


def ask_and_wait(page: Any, prompt: str = PROMPT) -> None:
    ask(page, prompt)
    expect(page.locator("#tools")).to_be_visible()


def shown(page: Any) -> list[str]:
    script = "[...document.querySelectorAll('#text .sentence')].map((node) => node.firstChild.textContent)"
    return list(page.evaluate(script))


def test_the_answer_stands_there_with_a_mark_per_sentence(page: Any, played: Played) -> None:
    ask_and_wait(page)
    assert page.locator("#prompt").inner_text() == PROMPT
    assert shown(page) == SENTENCES
    assert page.locator("#text .mark").all_inner_texts() == ["✓", "✓", "✓", "✓", "?", "–"]
    text = page.evaluate("document.querySelector('#text').innerText")
    for sign in ("✓", "?", "–", "↺ 1", "(supported)", "(inconclusive)", "(not checked)"):
        assert sign in text
    assert page.locator("#chips").inner_text().split("\n") == ["112 tokens, 34 withdrawn", "770 ms", "finished"]
    [request] = played.requests
    assert request["messages"] == [{"role": "user", "content": PROMPT}]
    assert request["stream"] is True
    assert request["ewe"] == {"events": True}
    assert request["model"] == "recorded"


def test_what_may_be_taken_back_looks_provisional(page: Any, played: Played) -> None:
    played.gate.clear()
    ask(page)
    expect(page.locator("#text .draft")).to_have_text(f" {SENTENCES[5]}")
    assert shown(page) == SENTENCES[:5]
    expect(page.locator("#doing")).to_have_text("writing sentence 6", ignore_case=True)
    assert page.locator("#stop").is_visible()
    assert not page.locator("#send").is_visible()
    assert "sentence 5" in page.locator("#evidence-title").inner_text().lower()
    assert "Edda Roon" in page.locator("#evidence-body").inner_text()
    assert page.locator("#evidence-body .held").count() == 4
    played.gate.set()
    expect(page.locator("#tools")).to_be_visible()
    assert shown(page) == SENTENCES
    assert page.locator("#text .draft").count() == 0
    assert page.locator("#doing").inner_text() == ""


def test_a_sentence_that_is_being_checked_is_marked_and_announced_once(page: Any, played: Played) -> None:
    played.held = ("verification", 3)  # that on the second sentence: the first has two
    played.gate.clear()
    page.evaluate(
        """() => {
          window.spoken = [];
          new MutationObserver((records) => {
            for (const record of records) for (const node of record.addedNodes) window.spoken.push(node.data);
          }).observe(document.querySelector('#said'), { childList: true });
        }"""
    )
    ask(page)
    expect(page.locator("#text .draft .checking")).to_have_text(f"{SENTENCES[1]}⋯")
    assert page.locator("#text .checking-mark").get_attribute("aria-hidden") == "true"
    expect(page.locator("#doing")).to_have_text("checking sentence 2", ignore_case=True)
    assert page.locator("#said").get_attribute("role") == "status"
    assert page.locator("#said").inner_text() == "Checking sentence 2."
    played.gate.set()
    expect(page.locator("#tools")).to_be_visible()
    assert page.locator("#text .checking").count() == 0
    spoken = page.evaluate("window.spoken")
    checks = [text for text in spoken if text.startswith("Checking")]
    assert checks.count("Checking sentence 3.") == 2, "for each of its wordings"
    assert len(spoken) == len(checks) + 6 + 2 + 1, "sentences, wordings taken back and the end; no single tokens"


def test_a_wording_that_was_taken_back_is_struck_out_while_the_next_is_written(page: Any, played: Played) -> None:
    played.held = ("checking", 5)  # the second wording of the third sentence
    played.gate.clear()
    ask(page)
    expect(page.locator("#text .struck")).to_have_text(" She won the Larch Prize in 1961.")
    expect(page.locator("#text .draft")).to_have_text(" She won the Larch Prize in 1963.")
    expect(page.locator("#doing")).to_have_text("writing sentence 3", ignore_case=True)
    assert page.locator("#text .checking").count() == 0
    played.gate.set()
    expect(page.locator("#tools")).to_be_visible()


def test_nothing_moves_for_those_who_want_that(page: Any, played: Played) -> None:
    page.emulate_media(reduced_motion="reduce")
    played.held = ("verification", 1)
    played.gate.clear()
    ask(page)
    expect(page.locator("#text .checking-mark")).to_be_visible()
    assert page.evaluate("document.getAnimations().length") == 0
    played.gate.set()


def test_stopping_ends_the_work_and_keeps_what_is_final(page: Any, played: Played) -> None:
    played.gate.clear()
    ask(page)
    expect(page.locator("#text .draft")).to_have_text(f" {SENTENCES[5]}")
    page.locator("#stop").click()
    expect(page.locator("#chips")).to_contain_text("aborted")
    assert played.disconnected.wait(LONG_MS / 1000)
    assert shown(page) == SENTENCES[:5]
    assert SENTENCES[5] not in page.locator("#text").inner_text()
    assert page.locator("#send").is_visible()


def test_pointing_at_a_sentence_shows_its_evidence_and_its_units(page: Any) -> None:
    ask_and_wait(page)
    page.locator("#text .sentence").nth(2).locator(".mark").hover()
    evidence = page.locator("#evidence").inner_text()
    assert "SENTENCE 3 OF 6" in evidence.upper()
    assert "1963 Mirela Hask" in evidence
    assert "veracity 0.80" in evidence
    assert "She won the Larch Prize in 1961." in evidence
    assert "speaks against" in evidence
    linked = page.locator("#timeline .unit.linked").evaluate_all("nodes => nodes.map((node) => node.dataset.passage)")
    assert linked == ["p3"]
    page.locator("#text .sentence").nth(5).locator(".mark").hover()
    assert "the verifier timed out" in page.locator("#evidence").inner_text()


def test_removed_wordings_open(page: Any) -> None:
    ask_and_wait(page)
    removed = page.locator("#text del")
    assert [node.is_visible() for node in removed.all()] == [False, False]
    page.locator("#text .rewritten").nth(1).click()
    assert [node.is_visible() for node in removed.all()] == [False, True]
    page.locator("#show-removed").click()
    assert [node.is_visible() for node in removed.all()] == [True, True]
    assert removed.all_inner_texts() == [
        "Mirela Hask is a hydrologist, born in Lund in 1931.",
        "She won the Larch Prize in 1961.",
    ]


def test_the_lanes_show_which_unit_sat_where(page: Any) -> None:
    ask_and_wait(page)
    boxes = {node.get_attribute("aria-label"): node.locator("rect").bounding_box()
             for node in page.locator("#timeline .unit").all()}  # fmt: skip
    assert len(boxes) == 7
    found = {key: next(box for name, box in boxes.items() if key in name) for key in ("Rumours", "unit: Mirela Hask")}
    # Written tokens, one per word here: Rumours from 0 to 45 of 73, Mirela Hask's page from 10 to the end.
    assert found["Rumours"]["width"] / found["unit: Mirela Hask"]["width"] == pytest.approx(45 / 63, abs=0.02)
    assert found["unit: Mirela Hask"]["y"] > found["Rumours"]["y"]
    assert page.locator("#timeline .withdrawn").count() == 2
    page.locator("#timeline .unit", has_text="Rumours").hover()
    assert "weight 0.20" in page.locator("#tip").inner_text()


def test_the_keyboard_does_it_all(page: Any) -> None:
    assert page.evaluate("document.activeElement.id") == "prompt-input"
    page.keyboard.type("One line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("and another")
    page.keyboard.press("Enter")
    expect(page.locator("#tools")).to_be_visible()
    assert page.locator("#prompt").inner_text() == "One line\nand another"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.sentence") == "2":
            break
    assert "SENTENCE 3" in page.locator("#evidence").inner_text().upper()
    page.keyboard.press("Enter")
    assert page.locator("#text .sentence").nth(2).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert page.locator("#text .sentence").nth(2).get_attribute("aria-pressed") == "false"
    page.locator("#prompt-input").focus()
    page.keyboard.press("ArrowUp")
    assert page.locator("#prompt-input").input_value() == "One line\nand another"
    assert "(not checked)" in page.locator("#text").inner_text()
    assert page.locator("#said").inner_text() == "The answer is complete: 6 sentences."


def test_settings_are_sent_and_kept(page: Any, played: Played) -> None:
    page.locator("#settings-toggle").click()
    page.locator("#set-max_tokens").fill("40")
    page.locator("#set-temperature").fill("0.7")
    page.locator("#set-seed").fill("5")
    page.locator("#set-closed_world").select_option("is unsupported")
    page.locator("#set-documents").fill("# A title\nA passage.\n\nAnother one,\nof two lines.")
    assert "max tokens 40" in page.locator("#changed").inner_text()
    assert "what is not borne out is unsupported" in page.locator("#changed").inner_text()
    ask_and_wait(page)
    request = played.requests[-1]
    assert (request["max_tokens"], request["temperature"], request["seed"]) == (40, 0.7, 5)
    assert request["ewe"] == {"events": True, "closed_world": True}
    assert request["documents"] == [
        {"title": "A title", "text": "A passage."},
        {"text": "Another one,\nof two lines."},
    ]
    page.reload()
    assert page.locator("#set-max_tokens").input_value() == "40"
    assert page.locator("#set-documents").input_value() == ""
    page.locator("#settings-toggle").click()
    page.locator("#reset").click()
    assert page.locator("#set-max_tokens").input_value() == "256"
    assert page.locator("#set-pace").input_value() == "30"
    page.locator("#set-pace").select_option("0")  # at 30 tokens a second it would take seconds
    ask_and_wait(page)
    assert "seed" not in played.requests[-1]
    assert played.requests[-1]["ewe"] == {"events": True}
    assert "documents" not in played.requests[-1]


def test_a_refusal_is_told_in_the_servers_words(page: Any, played: Played) -> None:
    played.refusals = [(503, "The queue is full.", {"retry-after": "3"}), (400, "the prompt is too long", {})]
    ask(page)
    expect(page.locator("#alarm")).to_have_text("The queue is full. Try again in 3 seconds.")
    ask(page)
    expect(page.locator("#alarm")).to_have_text("the prompt is too long")
    assert "No sentence was finished." in page.locator("#text").inner_text()
    ask_and_wait(page)
    assert not page.locator("#alarm").is_visible()
    assert shown(page) == SENTENCES


def test_an_empty_answer_says_why_and_what_to_try(page: Any, played: Played) -> None:
    played.is_empty = True
    ask_and_wait(page)
    assert "The model ended at once, without a word. Try other words" in page.locator("#text").inner_text()


def test_an_answer_that_breaks_off_keeps_its_sentences(page: Any, played: Played) -> None:
    played.breaks = True
    ask(page)
    expect(page.locator("#alarm")).to_have_text("the engine stopped")
    assert shown(page) == SENTENCES[:2]
    assert "the engine stopped" in page.locator("#chips").inner_text()


def test_a_server_with_a_key_asks_for_it(browser: Any) -> None:
    server = Played(key="secret")
    server.gate.set()
    with serving(server.app()) as url, browser.new_context() as context:
        context.add_init_script(AS_IT_COMES)
        page = patient(context.new_page())
        page.goto(f"{url}/")
        expect(page.locator("#alarm")).to_have_text("this server needs an API key")
        assert page.evaluate("document.activeElement.id") == "key"
        page.keyboard.type("secret")
        page.keyboard.press("Tab")
        expect(page.locator("#ready")).to_have_text("ready")
        ask_and_wait(page)
        assert server.requests[-1]["key"] == "Bearer secret"
        assert "secret" not in page.evaluate("JSON.stringify(localStorage)")


def test_an_answer_can_be_played_again_and_taken_along(page: Any, tmp_path: Any) -> None:
    ask_and_wait(page)
    page.locator("#replay").click()
    expect(page.locator("#stop")).to_be_visible()
    page.locator("#stop").click()
    expect(page.locator("#tools")).to_be_visible()
    assert shown(page) == SENTENCES
    with page.expect_download() as download:
        page.locator("#save").click()
    kept = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert kept["text"] == generation().text
    assert [sentence["verdict"] for sentence in kept["sentences"]] == [s.verdict.value for s in generation().sentences]


def test_earlier_answers_can_be_looked_at_again(page: Any) -> None:
    ask_and_wait(page, "The first question")
    assert not page.locator("#picker").is_visible()
    ask_and_wait(page, "The second question")
    page.locator("#which").select_option(label="1. The first question")
    assert page.locator("#prompt").inner_text() == "The first question"
    assert shown(page) == SENTENCES


def test_a_question_follows_on_the_answer_that_is_shown(page: Any, played: Played) -> None:
    ask_and_wait(page, "The first question")
    ask_and_wait(page, "The second question")
    first, second = (request["messages"] for request in played.requests)
    assert first == [{"role": "user", "content": "The first question"}]
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["content"] == generation().text.strip()
    assert second[2]["content"] == "The second question"
    assert "The first question" in page.locator("#turns").inner_text()
    page.locator("#fresh").click()
    ask_and_wait(page, "Something else")
    assert played.requests[2]["messages"] == [{"role": "user", "content": "Something else"}]
    assert not page.locator("#turns").is_visible()


def test_escape_stops_the_answer(page: Any, played: Played) -> None:
    played.gate.clear()
    ask(page)
    expect(page.locator("#text .draft")).to_have_text(f" {SENTENCES[5]}")
    page.keyboard.press("Escape")
    expect(page.locator("#chips")).to_contain_text("aborted")
    assert played.disconnected.wait(LONG_MS / 1000)
    assert shown(page) == SENTENCES[:5]


def test_sources_stand_beside_sentences(page: Any) -> None:
    ask_and_wait(page)
    cited = [sentence.source_ids for sentence in generation().sentences]
    numbers = list(dict.fromkeys(name for names in cited for name in names))
    assert numbers
    expected = ["".join(f"[{numbers.index(name) + 1}]" for name in names) for names in cited if names]
    assert page.locator("#text .cites").all_inner_texts() == expected
    assert page.locator("#sources li").count() == len(numbers)


def test_a_text_can_be_checked(page: Any, played: Played) -> None:
    page.get_by_text("Check a text").click()
    page.locator("#prompt-input").fill("🌊 Hm. She was born in Lund.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#tools")).to_be_visible()
    assert played.requests == [{"text": "🌊 Hm. She was born in Lund."}]
    assert shown(page) == ["🌊 Hm.", "She was born in Lund."]
    evidence = page.locator("#evidence").inner_text()
    assert "born in Orvane" in evidence
    assert "sources disagree" in evidence
    assert "0% of the claims supported" in page.locator("#chips").inner_text()
    assert not page.locator("#memory").is_visible()


def test_texts_are_checked_as_the_settings_have_it_where_answers_are_not_checked(page: Any, played: Played) -> None:
    played.engine |= {"unchecked": "verifier none"}
    page.reload()
    expect(page.locator("#engine")).to_contain_text("not checked")
    page.locator("#settings-toggle").click()
    page.locator("#set-closed_world").select_option("is unsupported")
    ask_and_wait(page)
    page.get_by_text("Check a text", exact=True).click()
    page.locator("#prompt-input").fill("She was born in Lund.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#chips")).to_contain_text("of the claims supported")
    assert played.requests[0]["ewe"] == {"events": True}  # the server would refuse more
    assert played.requests[1] == {"text": "She was born in Lund.", "closed_world": True}


def words_of(tab: Any, played: Played, **engine: Any) -> str:
    """What the page says before the first question, of a server with this engine."""
    played.engine |= engine
    with visiting(tab, played.url):
        expect(tab.locator("#ready")).to_have_text("ready")
        tab.get_by_text("Check a text", exact=True).click()
        placeholder = tab.locator("#prompt-input").get_attribute("placeholder")
        return f"{tab.locator('main').inner_text()}\n{placeholder}"


def test_the_page_says_what_is_on(tab: Any, played: Played) -> None:
    told = words_of(tab, played)
    assert "Every sentence is checked before it stands." in told
    assert "It takes back." in told
    on = "datastore notes (1234 passages, BM25) · verifier claims (judge builtin) · policy ewe · long-term memory off"
    assert on in told
    assert "Passages to check it against" not in told


def test_without_a_verifier_the_page_does_not_say_that_sentences_are_checked(tab: Any, played: Played) -> None:
    told = words_of(tab, played, verifier="none", judge=None, unchecked="verifier none", longterm_memory=True)
    assert "Your passages are read; nothing is checked." in told
    assert "Every sentence is checked" not in told
    assert "It takes back." not in told
    assert "stand as they are written: verifier none." in told
    assert "“Check a text” holds any finished text against the datastore." in told
    assert "not checked: verifier none" in told
    assert "long-term memory on" in told


def test_where_only_unsure_sentences_are_checked_the_page_says_so(tab: Any, played: Played) -> None:
    played.checks_every_sentence = False
    told = words_of(tab, played)
    assert "Sentences that the model is unsure of are checked before they stand." in told
    assert "Every" not in told


def test_without_a_datastore_the_page_says_that_passages_can_be_given(tab: Any, played: Played) -> None:
    why = "there is no datastore"
    told = words_of(tab, played, datastore=None, verifier="none", judge=None, unchecked=why)
    assert "Nothing is checked; passages can be given." in told
    assert "Every sentence is checked" not in told
    assert "Paste a text here, and passages to check it against under Settings." in told
    plain = words_of(tab, played, policy="plain", unchecked="policy plain checks nothing")
    assert "It writes alone." in plain


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_are_readable(tab: Any, played: Played, scheme: str) -> None:
    tab.emulate_media(color_scheme=scheme)
    with visiting(tab, played.url):
        expect(tab.locator("#examples button")).to_be_visible()
        for selector in (".hero", "#send", "#examples button", ".steps li", ".steps b", ".ready", ".hint", "#engine"):
            assert contrast(tab, selector) >= 4.5, selector
        played.gate.clear()
        ask(tab)
        expect(tab.locator("#text .draft")).to_have_text(f" {SENTENCES[5]}")
        for selector in ("#stop", ".draft", "#doing", "#evidence .badge", ".held", "#text .mark"):
            assert contrast(tab, selector) >= 4.5, selector


def test_a_phone_gets_one_column_and_the_evidence_as_a_sheet(browser: Any, played: Played) -> None:
    with browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True) as context:
        context.add_init_script(AS_IT_COMES)
        page = patient(context.new_page())
        page.goto(played.url)
        expect(page.locator("#examples button")).to_be_visible()
        page.locator("#settings-toggle").tap()
        ask_and_wait(page, PROMPT + " " + "Donaudampfschifffahrtsgesellschaft" * 3)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("#timeline").evaluate("node => node.scrollWidth <= node.clientWidth")
        boxes = [node.bounding_box() for node in page.locator("#timeline .unit, #timeline summary").all()]
        assert min(min(box["height"], box["width"]) for box in boxes) >= 24
        assert "Rumours" in page.locator("#timeline .unit-list").inner_text()
        sheet = page.locator("#evidence")
        assert not sheet.is_visible()
        page.locator("#text .sentence").nth(2).locator(".mark").tap()
        assert sheet.bounding_box()["width"] == 390
        page.locator("#close").tap()
        assert not sheet.is_visible()
        sizes = [node.bounding_box()["height"] for node in page.locator("button:visible").all()
                 if "rewritten" not in (node.get_attribute("class") or "")]  # fmt: skip
        assert min(sizes) >= 24


def test_hostile_texts_run_nothing(page: Any) -> None:
    ask_and_wait(page, HOSTILE)
    for sentence in page.locator("#text .sentence").all():
        sentence.focus()
    page.locator("#events summary").evaluate_all(
        "nodes => nodes.forEach((node) => { node.parentElement.open = true; })"
    )
    for unit in page.locator("#timeline .unit").all():
        unit.focus()
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate("[...document.querySelectorAll('a')].filter((a) => a.protocol === 'javascript:').length") == 0
    assert "<script>" in page.locator("#prompt").inner_text()


def test_a_model_that_reasons_is_said_to(page: Any, played: Played) -> None:
    played.reasons, played.held = True, ("draft", 1)
    played.gate.clear()
    ask(page)
    expect(page.locator("#doing")).to_have_text("reasoning", ignore_case=True)
    played.gate.set()
    expect(page.locator("#tools")).to_be_visible()
    assert shown(page) == SENTENCES
