"""What a terminal gets: drafts, strikes and colours, and nothing that could steer it."""

from __future__ import annotations

import io
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from show_fixture import HOSTILE, PASSAGES, generation, stream_events

from ewe.cli.live_view import LiveView
from ewe.cli.terminal import answer_text, clean, follow
from ewe.cli.text_view import LiveText, TextView, text_view
from ewe.types import Verdict


def terminal(width: int = 90, **options: Any) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, color_system="standard", _environ={}, **options
    )


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def run(console: Console) -> str:
    with LiveView(console) as view:
        follow(stream_events(), view)
    return shown(console)


def test_a_withdrawn_sentence_is_struck_out_red_and_the_final_one_green() -> None:
    text = run(terminal())
    assert "\x1b[9;31mShe won the Larch Prize in 1961.\x1b[0m" in text
    assert "\x1b[32mShe won the Larch Prize in 1963.\x1b[0m" in text


def test_the_draft_appears_dim_before_the_sentence_is_final() -> None:
    console = terminal()
    with LiveView(console) as view:
        assert view.live is not None
        for event in stream_events()[:9]:
            view.handle(event.kind, event.data)
        view.live.refresh()
        assert "\x1b[2;3mMirela Hask is a" in shown(console)
        assert "retrieval:" in shown(console)


def test_no_color_keeps_the_strike_and_drops_the_colours() -> None:
    text = run(terminal(no_color=True))
    assert "\x1b[9mShe won the Larch Prize in 1961.\x1b[0m" in text
    assert "\x1b[32m" not in text
    assert "\x1b[9;31m" not in text


def test_without_a_terminal_there_are_no_escape_codes_and_no_drafts() -> None:
    console = Console(file=io.StringIO(), width=90)
    text = run(console)
    assert "\x1b" not in text
    assert text.count("She won the Larch Prize in 1963.") == 1


def test_memory_follows_refreshes_and_evictions() -> None:
    view = LiveView(Console(file=io.StringIO()))
    follow(stream_events(), view)
    titles = {lane: [view.titles[unit] for unit in units] for lane, units in view.memory.items()}
    assert titles == {
        "retrieval": [PASSAGES["p6"].title, "The Glass Delta"],
        "verification": ["Mirela Hask", "Larch Prize"],
    }


def test_control_characters_of_a_passage_never_reach_the_terminal() -> None:
    assert "\x1b" in HOSTILE
    assert clean("a\x1b[31mb\x07\x9bc\u202ed\ne\tf") == "a�[31mb��c�d\ne\tf"
    events = stream_events()
    for event in events:
        if event.kind in ("draft", "sentence", "rewind"):
            event.data["text"] = event.data["text"].replace("Larch", "\x1b]0;owned\x07")
    console = terminal()
    with LiveView(console) as view:
        follow(events, view)
    assert "\x1b]0" not in shown(console)
    text = generation().text.replace("Orvane", "O\x1b[2Je")
    assert "\x1b" not in answer_text(replace(generation(), text=text)).plain


def test_paragraphs_are_set_apart() -> None:
    console = Console(file=io.StringIO(), width=90)
    with LiveView(console) as view:
        text = ""
        for piece, gap in (("One.", ""), ("Two.", " "), ("Three.", "\n\n")):
            view.handle("draft", {"start": len(text), "text": gap + piece})
            start, text = len(text) + len(gap), text + gap + piece
            view.handle("sentence", {"start": start, "end": len(text), "text": piece, "verdict": Verdict.SUPPORTED})
    assert [line.rstrip() for line in shown(console).splitlines()] == ["✓ One.", "✓ Two.", "", "✓ Three."]


def test_markup_in_texts_is_printed_as_it_is() -> None:
    events = stream_events()
    for event in events:
        if event.kind == "sentence":
            event.data["text"] = "[red]not markup[/red]"
    console = Console(file=io.StringIO(), width=90)
    with LiveView(console) as view:
        follow(events, view)
    assert "[red]not markup[/red]" in shown(console)


def test_running_text_adds_up_to_the_answer() -> None:
    console = terminal(no_color=True)
    follow(stream_events(), TextView(console))
    plain = shown(console).replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(map(len, plain.split("\n"))) <= 90
    plain = " ".join(part.strip() for part in plain.split("\n"))
    assert plain == generation().text


def seen(view: Any, events: list[Any]) -> str:
    """What the live region shows after these events."""
    with view:
        for event in events:
            view.handle(event.kind, event.data)
        console = terminal(view.console.width)
        console.print(view.live.get_renderable())
    return shown(console)


def upto(kind: str, count: int) -> list[Any]:
    """The recorded events up to the n-th of a kind."""
    events = stream_events()
    places = [place for place, event in enumerate(events) if event.kind == kind]
    return events[: places[count - 1] + 1]


@pytest.mark.parametrize("view", [LiveText, LiveView])
def test_a_sentence_that_is_being_checked_is_marked_and_named(view: Any) -> None:
    text = seen(view(terminal(500)), upto("checking", 2))
    assert "\x1b[2;3;4mMirela Hask is a hydrologist, born in Orvane in 1931.\x1b[0m\x1b[1;2;3m ⋯" in text
    assert "checking sentence 1" in text
    over = seen(view(terminal(500)), upto("verification", 2))
    assert "⋯" not in over
    assert "checking" not in over


def test_running_text_shows_the_draft_dim_and_the_last_wording_struck_out() -> None:
    events = [event for event in upto("checking", 4) if event.kind != "checking"]
    text = seen(LiveText(terminal(500)), events)
    assert "\x1b[9;31mMirela Hask is a hydrologist, born in Lund in 1931.\x1b[0m" not in text, "its new wording stands"
    events = upto("checking", 5)[:-1]
    text = seen(LiveText(terminal(500)), events)
    assert "\x1b[9;31mShe won the Larch Prize in 1961.\x1b[0m\x1b[2;3m She won the Larch Prize in 1963.\x1b[0m" in text


def test_what_stands_remains_on_the_screen_and_nothing_else() -> None:
    console = terminal(no_color=True)
    with LiveText(console) as view:
        view.live.update = lambda renderable, refresh=False: None  # type: ignore[method-assign]
        follow(stream_events(), view)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", shown(console))
    assert max(map(len, plain.split("\n"))) <= 90
    plain = " ".join(plain.split())
    assert plain == generation().text
    assert isinstance(text_view(Console(file=io.StringIO())), nullcontext)
    assert isinstance(text_view(console), LiveText)


def test_into_a_pipe_running_text_is_the_answer_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    follow(stream_events(), TextView(Console(file=io.StringIO())))
    assert capsys.readouterr().out == generation().text + "\n"


def test_the_whole_answer_carries_a_mark_per_sentence() -> None:
    text = answer_text(generation()).plain
    assert [sign for sign in text if sign in "✓?"] == list("✓✓✓✓?")
    assert {sentence.verdict for sentence in generation().sentences} >= {Verdict.NOT_CHECKED}
