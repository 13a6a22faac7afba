"""What a client sees of a stream while the verifier is at work: signs of life at once, drafts if it wants them.

The verifier answers when the test lets it, so that whatever arrives before has not waited for it.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from builtin_rig import CHAT, server
from server_rig import LONG, PROMPT, openai_client

from ewe import SamplingParams
from ewe.server.settings import ServerSettings
from ewe.types import Claim, Passage, Verdict, VerificationResult
from ewe.types import Evidence as Proof

openai = pytest.importorskip("openai", reason="the openai client is not installed")

MESSAGES: Any = [{"role": "user", "content": "Who was Valo Burstone?"}]
"""A question whose answer the built-in model writes again somewhere."""
LENGTH = 40
CHECKED_ALWAYS = ["feedback.verify_every=1", "feedback.max_attempts=3"]
PATHS = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": {"prompt": PROMPT, "max_tokens": 12},
    "/v1/responses": {"input": PROMPT, "max_output_tokens": 12},
}


class Turnstile:
    """A verifier that gives the verdicts that the test puts in, one for every sentence, when they are there."""

    def __init__(self) -> None:
        self.verdicts: queue.Queue[Verdict] = queue.Queue()
        self.judged: list[tuple[str, Verdict]] = []

    def let(self, verdict: Verdict = Verdict.SUPPORTED) -> None:
        self.verdicts.put(verdict)

    def verify(self, requests: Any) -> Any:
        return [self._judge(request.sentence, self.verdicts.get(timeout=LONG)) for request in requests]

    def _judge(self, sentence: str, verdict: Verdict) -> VerificationResult:
        self.judged.append((sentence, verdict))
        passage = Passage(f"about {sentence}", f"Against: {sentence}")
        evidence = (Proof(passage, verdict, 1.0),) if verdict is Verdict.REFUTED else ()
        return VerificationResult((Claim(sentence, verdict=verdict, score=1.0),), evidence)


class Witness(Turnstile):
    """Gives its verdicts in order, each when the client has received the sentence."""

    def __init__(self, verdicts: list[Verdict]) -> None:
        super().__init__()
        for verdict in verdicts:
            self.let(verdict)
        self.received = ""
        self.changed = threading.Condition()

    def receive(self, text: str) -> None:
        with self.changed:
            self.received = text
            self.changed.notify_all()

    def verify(self, requests: Any) -> Any:
        for request in requests:
            text = request.preceding + request.sentence
            with self.changed:
                assert self.changed.wait_for(partial(self._has, text), LONG), "it is not sent while it is checked"
        return super().verify(requests)

    def _has(self, text: str) -> bool:
        return self.received.startswith(text)


class Shelves:
    """A retriever that finds nothing, when the test lets it."""

    def __init__(self) -> None:
        self.passes: queue.Queue[None] = queue.Queue()

    def retrieve(self, queries: Any, top_k: int) -> Any:
        self.passes.get(timeout=LONG)
        return [[] for _ in queries]


def openai_of(client: Any) -> Any:
    return openai_client(str(client.base_url))


def lines_of(client: Any, path: str, **more: Any) -> Any:
    return client.stream("POST", path, json={**PATHS[path], "stream": True, **more})


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_says_at_once_what_it_is_waiting_for(path: str) -> None:
    """Nothing is retrieved, then nothing is checked; every line that is read here has come before it was."""
    shelves, turnstile = Shelves(), Turnstile()
    with (
        server(ServerSettings(ping=0.02), datastore=shelves, verifier=turnstile) as client,
        lines_of(client, path) as stream,
    ):
        assert stream.status_code == 200
        lines = (line for line in stream.iter_lines() if line)
        first = next(lines)
        assert ("assistant" in first) if "chat" in path else first in (": ping", "event: response.created")
        assert ": retrieving" in until(lines, ": retrieving")
        until(lines, ": ping")
        for _ in range(9):
            shelves.passes.put(None)
        before = until(lines, ": checking sentence 1")
        assert not any('"delta":"' in line or '"content":"N' in line or '"text":"N' in line for line in before)
        until(lines, ": ping")
        for _ in range(9):
            turnstile.let()
        until(lines, "data: [DONE]")


def until(lines: Iterator[str], wanted: str) -> list[str]:
    """The lines up to this one."""
    found = []
    for line in lines:
        found.append(line)
        if line == wanted:
            return found
    raise AssertionError(f"there is no line {wanted!r} in {found}")


def test_who_asks_for_events_gets_them_in_place_of_the_comments() -> None:
    turnstile = Turnstile()
    with server(verifier=turnstile, assignments=CHECKED_ALWAYS) as client:
        events = []
        verdicts = [Verdict.REFUTED] + [Verdict.SUPPORTED] * 9
        stream = openai_of(client).chat.completions.create(
            model="builtin", messages=MESSAGES, max_tokens=LENGTH, stream=True, extra_body={"ewe": {"events": True}}
        )
        for chunk in stream:
            told = (chunk.model_extra or {}).get("ewe", {})
            events += [(told["event"], told["data"])] if "event" in told else []
            if told.get("event") == "checking":  # its verdict comes after this
                turnstile.let(verdicts.pop(0))
        checks = [data for kind, data in events if kind == "checking"]
        assert [(data["number"], data["attempt"]) for data in checks[:3]] == [(1, 1), (1, 2), (2, 1)]
        ended = [data for kind, data in events if kind == "verification"]
        same = ("start", "end", "text", "attempt")
        assert [[data[name] for name in same] for data in ended] == [[data[name] for name in same] for data in checks]
        kinds = [kind for kind, _ in events]
        assert kinds.index("retrieving") < kinds.index("retrieval") < kinds.index("checking")
        assert kinds.index("checking") < kinds.index("verification") < kinds.index("rewind") < kinds.index("sentence")
        with lines_of(client, "/v1/chat/completions", ewe={"events": True}) as raw:
            for line in raw.iter_lines():
                assert not line.startswith(": checking")
                if '"event":"checking"' in line:
                    turnstile.let()


def chat_deltas(client: Any, **options: Any) -> Iterator[tuple[str, Any]]:
    for chunk in client.chat.completions.create(
        model="builtin", messages=MESSAGES, max_tokens=LENGTH, stream=True, **options
    ):
        for choice in chunk.choices:
            yield choice.delta.content or "", None
        yield "", (chunk.model_extra or {}).get("ewe")


def completion_deltas(client: Any, **options: Any) -> Iterator[tuple[str, Any]]:
    for chunk in client.completions.create(model="builtin", prompt=PROMPT, max_tokens=LENGTH, stream=True, **options):
        for choice in chunk.choices:
            yield choice.text, None
        yield "", (chunk.model_extra or {}).get("ewe")


def response_deltas(client: Any, **options: Any) -> Iterator[tuple[str, Any]]:
    for event in client.responses.create(
        model="builtin", input=PROMPT, max_output_tokens=LENGTH, stream=True, **options
    ):
        if event.type == "response.output_text.delta":
            yield event.delta, None
        elif event.type == "response.ewe.event":
            yield "", {"event": event.event, "data": event.data}
        elif event.type == "response.incomplete":
            yield "", event.response.ewe


@pytest.mark.parametrize(
    ("deltas", "events"),
    [
        (chat_deltas, False),
        (completion_deltas, False),
        (response_deltas, True),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((chat_deltas, True), (completion_deltas, True))),
        pytest.param(response_deltas, False, marks=pytest.mark.slow),
    ],
)
def test_drafts_come_as_they_are_written_and_revisions_lead_to_the_answer(
    deltas: Callable[..., Iterator[tuple[str, Any]]], events: bool
) -> None:
    """The first two wordings are shown and refuted, the third stands; no verdict is given before its text is here."""
    witness = Witness([Verdict.REFUTED, Verdict.REFUTED, *[Verdict.SUPPORTED] * 99])
    with server(ServerSettings(ping=0.02), verifier=witness, assignments=CHECKED_ALWAYS) as client:
        text, revisions, kinds, result = "", [], set(), {}
        for delta, told in deltas(openai_of(client), extra_body={"ewe": {"stream": "draft", "events": events}}):
            text += delta
            witness.receive(text)
            if told and "event" in told:
                kinds.add(told["event"])
            if told and told.get("event") == "revision":
                data = told["data"]
                assert (data["end"], data["removed"]) == (len(text), text[data["start"] :])
                assert data["reason"] == "refuted"
                text = text[: data["start"]]
                witness.receive(text)
                revisions.append(data["removed"])
            elif told and "sentences" in told:
                result = told
        assert len(revisions) == 2
        assert [item["removed"] for item in result["revisions"]] == [
            removed.strip()[: len(item["removed"])]
            for item, removed in zip(result["revisions"], revisions, strict=True)
        ]
        spans = [text[item["start_index"] : item["end_index"]] for item in result["sentences"]]
        assert spans == [sentence for sentence, verdict in witness.judged if verdict is Verdict.SUPPORTED]
        assert result["stats"]["rewrites"] == 2
        assert kinds == {"revision"} if not events else kinds >= {"revision", "rewind", "checking", "sentence"}
        assert "draft" not in kinds, "the deltas are the drafts"


def test_without_asking_nobody_sees_a_draft() -> None:
    with server() as client:
        [expected] = client.llm.chat(MESSAGES, SamplingParams(max_tokens=LENGTH))
        assert expected.stats.rewrites, "this prompt's answer is written again somewhere"
        for options in ({}, {"ewe": {"stream": "final"}}):
            text = "".join(delta for delta, _ in chat_deltas(openai_of(client), extra_body=options))
            assert text == expected.text
        refused = client.post("/v1/chat/completions", json={**CHAT, "ewe": {"stream": "tokens"}})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "ewe.stream")


def test_counts_of_then_go_with_drafts() -> None:
    with server() as client:
        body = {**CHAT, "messages": MESSAGES, "max_tokens": LENGTH, "stream": True, "ewe": {"stream": "draft"}}
        usage = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
        records = client.post("/v1/chat/completions", json={**body, **usage}).text.split("\n\n")
        chunks = [json.loads(item[6:]) for item in records if item.startswith("data: {")]
        counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
        assert counts == sorted(counts)
        assert counts[-1] > LENGTH
