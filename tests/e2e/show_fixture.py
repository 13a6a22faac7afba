"""A realistic generation with its stream, written by hand: six sentences, two rewrites, evictions, hostile text.

`record()` plays a little engine, so that events, text and statistics agree with each other; `FakeLLM` has the
engine's interface and returns what was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ewe.config import Config
from ewe.engine.request import Request
from ewe.errors import InvalidRequestError
from ewe.types import Claim, Generation, GenerationStats, Passage, Sentence, TraceEvent, Verdict

HOSTILE = (
    '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1"> [red]markup[/red] \x1b[31mescape'
)
PROMPT = "Tell me about the life of Mirela Hask."

PASSAGES = {
    passage.id: passage
    for passage in [
        Passage("p1", "Mirela Hask is a hydrologist, born in Orvane on 3 May 1931.", "Mirela Hask", "Almanac"),
        Passage("p2", "The Institute of Tides trained Mirela Hask, who took her degree in 1954.", "Institute of Tides",
                "Institute records", "https://example.org/tides", "1960-02-01", 0.9),
        Passage("p3", "Winners of the Larch Prize: 1961 Ivo Sandt, 1963 Mirela Hask, 1967 Edda Roon.", "Larch Prize",
                "Prize register", "javascript:alert(1)", "", 0.8),
        Passage("p4", "The Glass Delta is a treatise of 1970 by Mirela Hask on silt.", "The Glass Delta", "Library"),
        Passage("p5", "Some say that Mirela Hask was born in Lund.", "Rumours", "Pamphlet", veracity=0.2),
        Passage("p6", HOSTILE, "A hostile <b>title</b>", "<i>nowhere</i>"),
        Passage("p7", "Edda Roon won the Larch Prize in 1967 for her maps.", "Edda Roon", "Almanac"),
    ]
}  # fmt: skip


@dataclass
class Recorder:
    """Keeps text, tokens, memory and the clock in step while events are recorded."""

    text: str = ""
    tokens: int = 0
    sent: int = 0
    clock: float = 0.0
    trace: list[TraceEvent] = field(default_factory=list)
    stream: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    stats: GenerationStats = field(default_factory=lambda: GenerationStats(prompt_tokens=11))
    lanes: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: {"retrieval": [], "verification": []})
    units: int = 0

    def emit(self, kind: str, data: dict[str, Any], streamed: bool = False) -> None:
        self.trace.append(TraceEvent(kind, round(self.clock, 4), self.tokens, data))
        if streamed:
            self.stream.append((kind, data))

    def refresh(self, lane: str, passage_id: str, weight: float = 1.0) -> None:
        held = self.lanes[lane]
        if passage_id in {held_id for pairs in self.lanes.values() for _, held_id in pairs}:
            return
        if len(held) == 2:
            self.emit("evict", {"lane": lane, "unit_id": held.pop(0)[0]}, streamed=True)
        passage = PASSAGES[passage_id]
        data = {"lane": lane, "unit_id": self.units, "passage": asdict(passage), "weight": weight}
        self.emit("refresh", {**data, "num_tokens": 24, "cached": self.units % 3 == 1, "was_cut": False}, streamed=True)
        held.append((self.units, passage_id))
        self.units += 1
        self.stats.refreshes += 1
        self.stats.unit_tokens_encoded += 24

    def retrieve(self, query: str, ids: list[str]) -> None:
        self.emit("pause", {"for": ["retrieval"]})
        self.emit("retrieving", {"query": query}, streamed=True)
        self.clock += 0.012
        found = [{"id": key, "title": PASSAGES[key].title, "score": 7.5 - rank, "source": PASSAGES[key].source,
                  "veracity": PASSAGES[key].veracity} for rank, key in enumerate(ids)]  # fmt: skip
        self.emit("retrieval", {"query": query, "passages": found, "latency_s": 0.012}, streamed=True)
        for key in reversed(ids):
            self.refresh("retrieval", key, PASSAGES[key].veracity)
        self.emit("resume", {"waited_s": 0.012})
        self.stats.retrievals += 1
        self.stats.retrieval_wait_s += 0.012

    def write(self, sentence: str) -> int:
        start = len(self.text) + bool(self.text)
        words = sentence.split(" ")
        for number, word in enumerate(words):
            piece = word if start == 0 and number == 0 else " " + word
            self.stream.append(("draft", {"text": piece, "start": len(self.text)}))
            self.text += piece
            self.tokens += 2
            self.clock += 0.008
            self.stats.decode_s += 0.008
        return start

    def check(
        self, sentence: str, start: int, verdict: Verdict, evidence: list[tuple[str, str, str]], attempt: int
    ) -> Any:
        self.emit("pause", {"for": ["verification"]})
        about = {"start": start, "end": start + len(sentence), "text": sentence, "attempt": attempt}
        self.emit("checking", {"number": len(self.sentences) + 1, **about}, streamed=True)
        self.clock += 0.02
        claims = (Claim(sentence, 0, len(sentence), verdict, 0.9, tuple(key for key, _, _ in evidence)),)
        proofs = [
            {"id": key, "title": PASSAGES[key].title, "source": PASSAGES[key].source, "stance": stance, "score": 0.9}
            | {"excerpt": excerpt}
            for key, stance, excerpt in evidence
        ]
        data = {**about, "verdict": verdict.value,
                "score": float(verdict is Verdict.SUPPORTED), "claims": [asdict(claim) for claim in claims],
                "evidence": proofs, "latency_s": 0.02}  # fmt: skip
        self.emit("verification", data, streamed=True)
        self.stats.verifications += 1
        self.stats.verification_wait_s += 0.02
        return claims

    def sentence(
        self, wordings: list[tuple[str, Verdict, list[tuple[str, str, str]]]], attention: dict[str, float]
    ) -> None:
        removed: list[str] = []
        for attempt, (wording, verdict, evidence) in enumerate(wordings, start=1):
            tokens = self.tokens
            start = self.write(wording)
            claims = () if verdict is Verdict.NOT_CHECKED else self.check(wording, start, verdict, evidence, attempt)
            if attempt == len(wordings):
                self.emit("resume", {"waited_s": 0.02})
                break
            discarded = self.tokens - tokens
            kept = max(start - 1, 0)
            self.emit("rewind", {"start": start, "text": wording, "kept_chars": kept, "discarded_tokens": discarded,
                                 "attempt": attempt, "reason": "refuted"}, streamed=True)  # fmt: skip
            self.tokens, self.text = tokens, self.text[:kept]
            self.stats.tokens_discarded += discarded
            self.stats.rewrites += 1
            for key, _, _ in evidence:
                self.refresh("verification", key, PASSAGES[key].veracity)
            self.emit("resume", {"waited_s": 0.02})
            removed.append(wording)
        done = Sentence(wording, start, start + len(wording), verdict, float(verdict is Verdict.SUPPORTED), claims,
                        tuple(key for key, _, _ in evidence), attempt, tuple(removed), attention,
                        "the verifier timed out" if verdict is Verdict.NOT_CHECKED else "")  # fmt: skip
        self.sentences.append(done)
        self.stats.sentences += 1
        self.emit("commit", {"start": done.start, "end": done.end, "text": wording, "verdict": verdict.value})
        event = {"start": done.start, "end": done.end, "text": wording, "verdict": verdict.value, "score": done.score,
                 "claims": [{"text": claim.text, "verdict": claim.verdict.value} for claim in claims],
                 "attempts": attempt, "removed": list(removed)}  # fmt: skip
        self.stream.append(("sentence", event))
        self.stream.append(("text", {"text": self.text[self.sent : done.end]}))
        self.sent = done.end


S, R, U, N = Verdict.SUPPORTED, Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED


def record(prompt: str = PROMPT, attribution: bool = True) -> Recorder:
    """The whole run: six sentences, the first and the third written again."""
    run = Recorder()
    settings = {"memory": {"retrieval_units": 2, "verification_units": 2}, "policy": "ewe", "datastore": "builtin"}
    run.emit("start", {"prompt": prompt, "num_prompt_tokens": 11, "policy": "ewe", "settings": settings})
    shares = [
        {"p1": 0.41, "p5": 0.08, "p7": 0.02},
        {"p2": 0.52},
        {"p3": 0.61, "p1": 0.04},
        {"p4": 0.3, "p3": 0.2},
        {"p7": 0.25},
        {},
    ]
    attention = iter(shares if attribution else [{}] * 6)
    run.retrieve(prompt, ["p5", "p7"])
    born = "Mirela Hask is a hydrologist, born in Orvane in 1931."
    run.sentence([
        ("Mirela Hask is a hydrologist, born in Lund in 1931.", R, [("p1", "refuted", "born in Orvane on 3 May 1931")]),
        (born, S, [("p1", "supported", "Mirela Hask is a hydrologist, born in Orvane on 3 May 1931.")]),
    ], next(attention))  # fmt: skip
    run.retrieve(born, ["p2"])
    run.sentence([("She took her degree at the Institute of Tides in 1954.", S,
                   [("p2", "supported", "took her degree in 1954")])], next(attention))  # fmt: skip
    run.sentence([
        ("She won the Larch Prize in 1961.", R, [("p3", "refuted", "1961 Ivo Sandt, 1963 Mirela Hask")]),
        ("She won the Larch Prize in 1963.", S, [("p3", "supported", "1963 Mirela Hask")]),
    ], next(attention))  # fmt: skip
    run.retrieve("The Glass Delta", ["p4", "p6"])
    run.sentence([("Her best known work is The Glass Delta, of 1970.", S, [("p4", "supported", "a treatise of 1970")])],
                 next(attention))  # fmt: skip
    run.sentence([("Edda Roon was her pupil – “a fine one” 🌊.", U,
                   [("p7", "inconclusive", ""), ("p6", "inconclusive", HOSTILE)])], next(attention))  # fmt: skip
    run.sentence([("She lives in Orvane & writes <b>no more</b>.", N, [])], next(attention))
    run.stats.tokens_kept = run.tokens
    run.stats.total_s = run.clock + 0.01
    run.emit("finish", {"reason": "stop"})
    return run


def generation(prompt: str = PROMPT, attribution: bool = True) -> Generation:
    """The recorded run as the engine returns it."""
    run = record(prompt, attribution)
    return Generation(
        prompt,
        run.text,
        tuple(range(run.tokens)),
        "stop",
        tuple(run.sentences),
        dict(PASSAGES),
        run.stats,
        tuple(run.trace),
    )


@dataclass
class StreamEvent:
    """The engine's stream event."""

    kind: str
    data: dict[str, Any]
    generation: Generation | None = None


class FakeLLM:
    """Answers every prompt with the recorded run, the last prompt first; `calls` holds what it was asked.

    A prompt that holds "too long" is refused before anything is computed, one that holds "fail" fails alone, one that
    holds "nothing" gets an empty answer. With `interrupt_after`, Ctrl-C is pressed when so many answers are there.
    `template`: whether it is a chat model, whose prompts are recorded as conversations.
    """

    config = Config.from_mapping({"model": {"name": "fake"}})
    verifies = True

    def __init__(
        self, interrupt_after: int | None = None, events: list[StreamEvent] | None = None, template: bool = False
    ) -> None:
        self.calls: list[Any] = []
        self.has_chat_template = template
        self.interrupt_after = interrupt_after
        self.events = events

    def __enter__(self) -> FakeLLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append("closed")

    @property
    def client(self) -> FakeLLM:
        return self

    def run(self, requests: list[Request], on_result: Any, on_refused: Any) -> None:
        params, prompts = requests[0].params, [str(request.prompt) for request in requests]
        self.calls.append((prompts, params, requests[0].documents))
        served = []
        for number, prompt in enumerate(prompts):
            if "too long" in prompt:
                on_refused(number, InvalidRequestError("the prompt is too long"))
            else:
                served.append(number)
        done = 0
        for number in (served[place] for place in interleaved(len(served))):
            for index in reversed(range(params.n)):
                if self.interrupt_after is not None and done >= self.interrupt_after:
                    raise KeyboardInterrupt
                answer = replace(generation(prompts[number]), index=index)
                if "fail" in prompts[number]:
                    answer = replace(answer, finish_reason="error", error="NaN in the logits")
                if "nothing" in prompts[number]:
                    answer = empty(prompts[number], index)
                done += 1
                on_result(number, answer)

    def stream(self, prompt: str, params: Any = None, documents: Any = None, **template: Any) -> Iterator[StreamEvent]:
        self.calls.append((prompt, params, documents, template) if template else (prompt, params, documents))
        if "nothing" in prompt:
            yield StreamEvent("finish", {"reason": "stop"}, empty(prompt))
            return
        if self.events is not None:
            yield from self.events
            return
        yield from stream_events(prompt)

    def chat_requests(self, messages: Any, params: Any, documents: Any) -> list[Request]:
        return [Request(self.apply_chat_template(messages), params, documents)]

    def apply_chat_template(self, messages: Any) -> str:
        return self.chat_prompt(messages)

    def chat_prompt(self, messages: Any) -> str:
        return "".join(f"<{message['role']}>{message['content']}" for message in messages)


def empty(prompt: str, index: int = 0) -> Generation:
    """What a model gives that ends at once."""
    return Generation(prompt, "", (2,), "stop", (), {}, GenerationStats(prompt_tokens=3), (), index=index)


def interleaved(count: int) -> list[int]:
    """1, 0, 3, 2, ...: an order in which answers do not arrive in the order of their prompts."""
    return [number for pair in range(0, count, 2) for number in reversed(range(pair, min(pair + 2, count)))]


def stream_events(prompt: str = PROMPT) -> list[StreamEvent]:
    """The recorded run as the engine streams it."""
    events = [StreamEvent(kind, data) for kind, data in record(prompt).stream]
    return [*events, StreamEvent("finish", {"reason": "stop"}, generation(prompt))]
