"""The page of checked texts as a file: self-contained, safe whatever passages hold, and complete."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_fixture import SENTENCES, checked_text
from show_fixture import HOSTILE
from test_trace_page import Page, parsed

from ewe.evaluation.report import check_page
from ewe.evaluation.report.check_page import _PART
from ewe.text.check_result import CheckedSentence, CheckedText
from ewe.types import Sentence, Verdict


def test_nothing_is_loaded_from_elsewhere_and_only_its_own_script_runs() -> None:
    tags = Page(check_page({"a.txt": checked_text()})).tags
    assert not [attributes for _, attributes in tags if {"src", "srcset", "action"} & attributes.keys()]
    assert [attributes["href"] for _, attributes in tags if "href" in attributes] == ["#text"]
    [policy] = [tag["content"] for _, tag in tags if tag.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_hostile_texts_add_no_tag() -> None:
    usual = [tag for tag, _ in Page(check_page({"a": checked_text()})).tags]
    base = checked_text()
    sentence = Sentence(HOSTILE, 0, len(HOSTILE), reason=HOSTILE)
    others = tuple(
        replace(item, sentence=replace(item.sentence, text=HOSTILE, start=len(HOSTILE), end=2 * len(HOSTILE)))
        for item in base.sentences[1:]
    )
    attack = CheckedText(HOSTILE * 2, (replace(base.sentences[0], sentence=sentence), *others), HOSTILE, HOSTILE)
    text = check_page({HOSTILE: attack}, {HOSTILE: {HOSTILE: 1.0}}, HOSTILE, HOSTILE)
    assert [tag for tag, _ in Page(text).tags] == usual
    data = text.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert not set("<>&") & set(data)


def test_the_data_tell_what_was_found() -> None:
    [entry] = parsed(check_page({"a.txt": checked_text()}, {"a.txt": {"f1": 0.5}}, "a library"))["texts"]
    assert "".join(piece["text"] for piece in entry["pieces"]) == checked_text().text
    assert [item["text"] for item in entry["sentences"]] == list(SENTENCES)
    birth, year = entry["sentences"][0]["claims"]
    assert (birth["evidence"], birth["conflicting"]) == ([0, 1], True)
    assert (year["evidence"], year["conflicting"]) == ([2], False)
    assert entry["counts"]["sentences"] == {"supported": 1, "refuted": 1, "inconclusive": 1, "not_checked": 2}
    assert (entry["counts"]["conflicts"], entry["scores"], entry["verdict"]) == (1, {"f1": 0.5}, "refuted")
    assert set(entry["sources"]) == {"p1", "p2", "p3", "p4"}


def long_text(sentences: int) -> CheckedText:
    text = "It is so. " * sentences
    found = [Sentence("It is so.", 10 * number, 10 * number + 9, Verdict.SUPPORTED) for number in range(sentences)]
    return CheckedText(text, tuple(CheckedSentence(sentence) for sentence in found))


@pytest.mark.parametrize(("sentences", "parts"), [(_PART, 1), (_PART + 1, 2), (3 * _PART, 3)])
def test_long_texts_come_in_parts_that_add_up(sentences: int, parts: int) -> None:
    entries = parsed(check_page({"a": long_text(sentences)}))["texts"]
    assert len(entries) == parts
    assert "".join(piece["text"] for entry in entries for piece in entry["pieces"]) == long_text(sentences).text
    assert [entry["first"] for entry in entries] == [number * _PART for number in range(parts)]
    for entry in entries:
        assert entry["counts"]["sentences"]["supported"] == sentences
        shown = [piece["sentence"] for piece in entry["pieces"] if piece["sentence"] is not None]
        assert shown == list(range(len(entry["sentences"])))


def test_readers_without_scripts_get_the_verdicts() -> None:
    text = check_page({"a.txt": checked_text()})
    plain = text.split("<noscript>")[1].split("</noscript>")[0]
    assert "She won the Larch Prize in 1961. <b>(refuted)</b>" in plain
    assert "What a life! <b>(not checked)</b>" in plain


def test_no_texts_still_give_a_page() -> None:
    assert parsed(check_page({}))["texts"] == []
