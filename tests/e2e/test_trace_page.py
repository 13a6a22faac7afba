"""The trace page as a file: self-contained, and safe whatever the passages hold."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from enum import Enum
from html.parser import HTMLParser
from typing import Any

import numpy as np
from show_fixture import HOSTILE, PASSAGES, PROMPT, generation

from ewe.evaluation.report import trace_lines, trace_page
from ewe.text.jsonable import jsonable
from ewe.types import Generation, Passage, TraceEvent, Verdict


class Page(HTMLParser):
    """The tags of a page with their attributes, and the text of its data element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == ("script", {"type": "application/json", "id": "data"}):
            self.data += data


def parsed(text: str) -> Any:
    return json.loads(Page(text).data)


def hostile(text: str = HOSTILE) -> Generation:
    """A generation in which every text is an attack."""
    base = generation()
    sentence = replace(base.sentences[0], text=text, start=0, end=len(text), removed=(text,), reason=text)
    passages = {key: Passage(text, text, text, text, text, text) for key in (text, "p1")}
    event = TraceEvent(text, 0.0, 1, {text: text, "lane": text, "passage": {"title": text}})
    return replace(base, prompt=text, text=text, sentences=(sentence,), sources=passages, trace=(event,), error=text)


def test_nothing_is_loaded_from_elsewhere() -> None:
    tags = Page(trace_page([generation()])).tags
    assert not [attributes for _, attributes in tags if {"src", "srcset", "action"} & attributes.keys()]
    links = [attributes["href"] for _, attributes in tags if "href" in attributes]
    assert links == ["#answer"]
    assert not {"link", "iframe", "object", "img"} & {tag for tag, _ in tags}
    assert "@import" not in trace_page([generation()])


def test_only_the_pages_own_script_may_run() -> None:
    import base64
    import hashlib

    text = trace_page([generation()])
    [policy] = [tag["content"] for _, tag in Page(text).tags if tag.get("http-equiv") == "Content-Security-Policy"]
    script = text.rsplit("<script>", 1)[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_hostile_texts_add_no_tag() -> None:
    usual = [tag for tag, _ in Page(trace_page([generation()])).tags]
    text = trace_page([hostile()], title=HOSTILE)
    assert [tag for tag, _ in Page(text).tags] == usual
    assert "window.hacked=1</script>" not in text
    assert parsed(text)["generations"][0]["sentences"][0]["text"] == HOSTILE


def test_texts_that_look_like_template_marks_stay_texts() -> None:
    marks = "@@SCRIPT@@ @@DATA@@ @@"
    data = parsed(trace_page([hostile(marks)]))
    assert data["generations"][0]["prompt"] == marks


def test_unusual_values_still_give_strict_json() -> None:
    class Odd(Enum):
        ONE = Verdict.REFUTED

    values = {
        "nan": math.nan, "inf": -math.inf, "numpy": np.float32(0.5), "array": np.arange(3), "enum": Odd.ONE,
        "tuple": (1, 2), "set": {3}, "bytes": b"x", "passage": PASSAGES["p1"], 7: "key", "surrogate": "a\ud800b",
        "bool": True, "object": Odd,
    }  # fmt: skip
    found = json.loads(json.dumps(jsonable(values), allow_nan=False))
    assert found["nan"] is found["inf"] is None
    assert (found["numpy"], found["array"], found["enum"], found["tuple"]) == (0.5, [0, 1, 2], "refuted", [1, 2])
    assert (found["set"], found["passage"]["title"], found["7"]) == ([3], "Mirela Hask", "key")
    assert (found["surrogate"], found["bool"]) == ("a?b", True)
    event = TraceEvent("retrieval", math.nan, 0, values)
    page = trace_page([replace(generation(), trace=(event,), text="a\ud800b", sentences=())])
    assert page.encode("utf-8")
    assert parsed(page)["generations"][0]["events"][0]["data"]["nan"] is None


def test_pieces_are_cut_by_code_points_and_add_up_to_the_text() -> None:
    data = parsed(trace_page([generation()]))["generations"][0]
    assert "".join(piece["text"] for piece in data["pieces"]) == generation().text
    for piece in data["pieces"]:
        if piece["sentence"] is not None:
            assert piece["text"] == data["sentences"][piece["sentence"]]["text"]


def test_removed_wordings_carry_the_evidence_that_refuted_them() -> None:
    sentences = parsed(trace_page([generation()]))["generations"][0]["sentences"]
    [wording] = sentences[2]["removed"]
    assert wording["text"] == "She won the Larch Prize in 1961."
    assert [item["stance"] for item in wording["evidence"]] == ["refuted"]
    assert [item["stance"] for item in sentences[2]["evidence"]] == ["supported"]


def test_readers_without_scripts_get_the_answer() -> None:
    text = trace_page([generation()])
    plain = re.search(r"<noscript>(.*?)</noscript>", text, re.S)
    assert plain is not None
    assert PROMPT in plain[1]
    assert "&lt;b&gt;no more&lt;/b&gt;" in plain[1]


def test_trace_lines_name_their_request() -> None:
    lines = [json.loads(line) for line in trace_lines([generation(), generation("b")], ["x", "y"])]
    count = len(generation().trace)
    assert [line["id"] for line in lines] == ["x"] * count + ["y"] * count
    assert lines[0]["kind"] == "start"
    assert lines[count - 1]["data"] == {"reason": "stop"}


def test_an_empty_answer_has_a_page() -> None:
    empty = replace(generation(), text="", sentences=(), trace=(), sources={})
    data = parsed(trace_page([empty]))["generations"][0]
    assert data["pieces"] == []
    assert parsed(trace_page([]))["generations"] == []
