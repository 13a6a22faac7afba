"""The memories of a running engine: who sees what, what checks teach, and that no failure reaches a request."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from longterm_parts import WordEncoder, new_store

from ewe.config import LongTermConfig
from ewe.errors import ConfigError, DatastoreError
from ewe.longterm import request_memories
from ewe.longterm.default_memory import default_memory
from ewe.longterm.memory_search import address
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.request_memories import RequestMemories, scopes_of
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore
from ewe.types import (
    Claim,
    Evidence,
    Generation,
    GenerationStats,
    MemoryOptions,
    Passage,
    Query,
    Sentence,
    TraceEvent,
    Verdict,
)

LONG = 120.0
TRUE, FALSE = "The bridge opened in 1932", "The bridge opened in 1923"
BOOK = Passage("p1", "The old bridge opened in 1932", veracity=0.95)
FOR = Evidence(BOOK, Verdict.SUPPORTED, 0.9)


class YearJudge:
    """Texts that end in the same year support each other, others refute; `gate` holds every answer up."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.fail = False

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Any:
        assert self.gate.wait(LONG)
        if self.fail:
            raise RuntimeError("no judge today")
        same = [evidence.split()[-1] == claim.split()[-1] for evidence, claim in pairs]
        return np.array([(0.95, 0, 0.05) if yes else (0, 0.95, 0.05) for yes in same], dtype=np.float32).reshape(-1, 3)


@pytest.fixture
def judge() -> YearJudge:
    return YearJudge()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with new_store(tmp_path / "memories") as opened:
        yield opened


@pytest.fixture
def memories(store: MemoryStore, judge: YearJudge) -> Iterator[RequestMemories]:
    opened = RequestMemories(MemoryService(store, judge=judge), LongTermConfig(top_k=3))
    yield opened
    judge.gate.set()
    opened.close()


def tell(memories: RequestMemories, content: str, user: str = "", agent: str = "") -> Memory:
    return memories.service.add(content, Scope(user, agent), MemorySource("user", user or "somebody", 0.7))


def texts(memories: RequestMemories, query: str, options: MemoryOptions) -> set[str]:
    [hits] = memories.recall([Query(query, options)])
    return {hit.passage.text for hit in hits}


def answer(*found: str, sentences: tuple[Sentence, ...] = ()) -> Generation:
    """An answer to which retrieval brought these passages."""
    trace = (TraceEvent("retrieval", 0.0, 0, {"passages": [{"id": name} for name in found]}),)
    return Generation("?", "", (), "stop", sentences, {}, GenerationStats(), trace)


def supported(text: str, ids: tuple[str, ...] = ("p1",)) -> Sentence:
    claim = Claim(text, verdict=Verdict.SUPPORTED, score=1.0, evidence_ids=ids)
    return Sentence(f"{text}.", 0, len(text) + 1, Verdict.SUPPORTED, 1.0, (claim,))


def test_a_request_sees_what_its_options_say(memories: RequestMemories) -> None:
    for user, agent in (("ann", ""), ("ann", "helper"), ("", "helper"), ("", ""), ("bob", "")):
        tell(memories, f"fact of {user or 'nobody'} with {agent or 'nobody'}", user, agent)
    memories._settings = LongTermConfig(top_k=9)
    own = {"fact of ann with nobody", "fact of ann with helper", "fact of nobody with helper"}
    shared = {"fact of nobody with nobody"}
    helped = {"user": "ann", "agent": "helper"}
    assert texts(memories, "fact", MemoryOptions(**helped)) == own | shared
    assert texts(memories, "fact", MemoryOptions(**helped, scope="own")) == own
    assert texts(memories, "fact", MemoryOptions(**helped, scope="shared")) == shared
    assert texts(memories, "fact", MemoryOptions(**helped, scope="none")) == set()
    assert texts(memories, "fact", MemoryOptions("bob", scope="own")) == {"fact of bob with nobody"}
    assert texts(memories, "fact", MemoryOptions()) == shared


def test_memories_bring_their_belief_their_share_and_their_owner(memories: RequestMemories) -> None:
    mine = tell(memories, TRUE, "ann")
    ours = tell(memories, "The bridge is long")
    [hits] = memories.recall([Query("When was the bridge opened?", MemoryOptions("ann"))])
    by_id = {hit.passage.id: hit for hit in hits}
    assert by_id[address(mine)].passage.veracity == mine.veracity
    assert max(hit.score for hit in hits) == 1.0
    assert by_id[address(mine)].owner
    assert not by_id[address(ours)].owner
    [[other]] = memories.recall([Query("long bridge", MemoryOptions("bob"))])
    assert other.owner == ""
    assert memories.counts["recalled"] == 3


def test_the_threshold_of_a_request_goes_before_that_of_the_settings(memories: RequestMemories) -> None:
    memories.service.store.add([Memory("m", "the bridge is haunted", veracity=0.1)])
    assert texts(memories, "bridge", MemoryOptions()) == set()
    assert texts(memories, "bridge", MemoryOptions(threshold=0.05)) == {"the bridge is haunted"}
    memories._settings = LongTermConfig(threshold=0.05)
    assert texts(memories, "bridge", MemoryOptions()) == {"the bridge is haunted"}
    assert texts(memories, "bridge", MemoryOptions(threshold=0.5)) == set()


def test_a_store_that_fails_brings_nothing_and_is_counted(
    memories: RequestMemories, store: MemoryStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(memories, TRUE, "ann")

    def broken(*_: object) -> None:
        raise sqlite3.OperationalError("the disk is on fire")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "ewe.longterm"):
        patch.setattr(store.lexicon, "search", broken)
        assert memories.recall([Query("bridge", MemoryOptions("ann"))] * 2) == [[], []]
    assert memories.counts == {"recall_failed": 2}
    assert "the disk is on fire" in caplog.text
    assert texts(memories, "bridge", MemoryOptions("ann")) == {TRUE}


def test_checks_move_the_memories_that_an_answer_was_given(memories: RequestMemories, store: MemoryStore) -> None:
    true, false = tell(memories, TRUE, "ann"), tell(memories, FALSE, "ann")
    memories.learn(answer(address(true), "p7", address(false)), [FOR], MemoryOptions("ann"))
    assert memories.wait(LONG)
    assert store.get(Scope("ann"), true.id).veracity > true.veracity
    assert store.get(Scope("ann"), false.id).veracity < false.veracity
    last = store.history(Scope("ann"), false.id)[-1]
    assert (last.reason, last.evidence) == ("verified", ("passage:p1",))
    assert memories.counts["verified"] == 2
    assert len(list(store.scan(None))) == 2, "nothing is promoted unless the settings say so"


@pytest.mark.parametrize("name", ["of another", "memory:", "memory:ann", "memory:bob//", "memory:a/b/c/d"])
def test_nobody_elses_memory_is_moved_whatever_passages_are_called(
    memories: RequestMemories, store: MemoryStore, name: str
) -> None:
    lie = tell(memories, FALSE, "ann")
    named = address(lie) if name == "of another" else name
    for options in (MemoryOptions("bob"), MemoryOptions("ann", scope="shared"), MemoryOptions("ann", scope="none")):
        memories.learn(answer(named), [FOR], options)
    assert memories.wait(LONG)
    assert "learning_failed" not in memories.counts
    assert store.get(Scope("ann"), lie.id) == lie


def test_a_document_of_the_request_is_no_memory(memories: RequestMemories, store: MemoryStore) -> None:
    lie = tell(memories, FALSE, "ann")
    given_as_document = answer()
    given_as_document.sources[address(lie)] = Passage(address(lie), FALSE)
    memories.learn(given_as_document, [FOR], MemoryOptions("ann"))
    assert memories.wait(LONG)
    assert store.get(Scope("ann"), lie.id) == lie


def test_supported_claims_become_memories_of_the_asker_where_that_is_wanted(
    memories: RequestMemories, store: MemoryStore
) -> None:
    memories._settings = LongTermConfig(promote=True)
    sentences = (supported(TRUE), Sentence(FALSE, 0, 1), supported("It is red", ("p9",)), supported(FALSE, ("p2",)))
    against = Evidence(Passage("p2", "The bridge opened in 1932"), Verdict.REFUTED, 1.0)
    given_to = MemoryOptions("ann", "helper")
    memories.learn(answer(sentences=sentences), [FOR, against], given_to)
    memories.learn(answer(sentences=sentences), [FOR], MemoryOptions("bob", scope="none"))
    assert memories.wait(LONG)
    [made] = store.scan(None)
    assert (made.content, made.scope) == (TRUE, Scope("ann", "helper"))
    assert store.history(made.scope, made.id)[0].evidence == ("passage:p1",)
    assert memories.counts["promoted"] == 1


def test_learning_holds_nobody_up_and_its_failure_ends_nothing(
    memories: RequestMemories, store: MemoryStore, judge: YearJudge
) -> None:
    lie = tell(memories, FALSE, "ann")
    judge.gate.clear()
    judge.fail = True
    memories.learn(answer(address(lie)), [FOR], MemoryOptions("ann"))  # returns although the judge does not
    assert not memories.wait(0)
    judge.gate.set()
    assert memories.wait(LONG)
    assert memories.counts["learning_failed"] == 1
    judge.fail = False
    memories.learn(answer(address(lie)), [FOR], MemoryOptions("ann"))
    assert memories.wait(LONG)
    assert store.get(Scope("ann"), lie.id).veracity < lie.veracity


def test_what_waits_to_be_learnt_is_bounded(
    memories: RequestMemories, judge: YearJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_memories, "MOST_WAITING", 2)
    lie = tell(memories, FALSE, "ann")
    judge.gate.clear()
    for _ in range(5):
        memories.learn(answer(address(lie)), [FOR], MemoryOptions("ann"))
    assert memories.counts["not_learnt"] == 3
    judge.gate.set()
    assert memories.wait(LONG)


def test_closing_learns_what_is_left_and_closes_only_its_own_store(
    store: MemoryStore, judge: YearJudge, tmp_path: Path
) -> None:
    opened = RequestMemories(MemoryService(store, judge=judge), LongTermConfig())
    lie = tell(opened, FALSE, "ann")
    opened.learn(answer(address(lie)), [FOR], MemoryOptions("ann"))
    opened.close()
    assert store.get(Scope("ann"), lie.id).veracity < lie.veracity
    opened.learn(answer(address(lie)), [FOR], MemoryOptions("ann"))  # comes too late
    assert opened.counts["not_learnt"] == 1
    assert opened.wait(0)
    own = RequestMemories(
        default_memory(tmp_path / "own", LongTermConfig(), judge=judge), LongTermConfig(), owns_store=True
    )
    own.close()
    MemoryStore.open(tmp_path / "own", read_only=False).close()  # the next writer is let in


@pytest.mark.parametrize("scorer", ["default", "verimem", "mma", "mark", "none"])
def test_every_scorer_can_be_had_by_its_name(tmp_path: Path, judge: YearJudge, scorer: Any) -> None:
    service = default_memory(tmp_path / "new", LongTermConfig(scorer=scorer, judge_turns=True), judge=judge)
    opened = RequestMemories(service, LongTermConfig(), owns_store=True)
    told = tell(opened, TRUE, "ann")
    for _ in range(3):
        assert texts(opened, "bridge", MemoryOptions("ann")) == {TRUE}
    opened.learn(answer(address(told), address(told)), [], MemoryOptions("ann"))
    opened.close()
    again = default_memory(tmp_path / "new", LongTermConfig(scorer=scorer, judge_turns=True), judge=judge)
    assert again.store.get(Scope("ann"), told.id).recall_count == 1
    with pytest.raises(DatastoreError, match="is writing"):
        default_memory(tmp_path / "new", LongTermConfig(), judge=judge)
    against = again.add(FALSE, Scope("ann"), MemorySource("user", "bob", 0.8))
    # The default weighs the contradiction when it is read.
    assert against.contradicts == (told.id,)
    assert (against.veracity == 0.8) == (scorer == "default")
    again.store.close()


@pytest.fixture(autouse=True)
def no_encoder_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.default_memory.builtin_encoder_path", lambda: None)


def test_a_store_with_vectors_is_searched_by_meaning_too(
    tmp_path: Path, judge: YearJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_store(tmp_path / "memories") as made:
        made.add([Memory("m", "the bridge is long", veracity=0.9)])
        made.embeddings.embed(WordEncoder())
    monkeypatch.setattr("ewe.longterm.default_memory.SentenceEncoder", lambda name: WordEncoder())
    opened = RequestMemories(
        default_memory(tmp_path / "memories", LongTermConfig(), judge=judge), LongTermConfig(), owns_store=True
    )
    tell(opened, "the tower opened in 1932")
    deadline = time.monotonic() + LONG
    while opened.service.store.stats()["without_vector"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert texts(opened, "bridge", MemoryOptions()) == {"the bridge is long"}
    opened.close()

    def missing(name: str | None) -> None:
        raise ConfigError("no encoder here")

    monkeypatch.setattr("ewe.longterm.default_memory.SentenceEncoder", missing)
    with pytest.raises(ConfigError, match="no encoder"):
        default_memory(tmp_path / "memories", LongTermConfig(), judge=judge)
    MemoryStore.open(tmp_path / "memories", read_only=False).close()  # it was let go


NAMES = st.sampled_from(["", "ann", "bob", "a/b", "a%2Fb", "ann/", "ann\x00"])


@examples(15, 60, suppress_health_check=list(HealthCheck))
@given(
    told=st.lists(st.tuples(NAMES, NAMES), max_size=8),
    asker=st.tuples(NAMES, NAMES),
    scope=st.sampled_from(["all", "own", "shared", "none"]),
)
def test_nobody_sees_what_is_not_theirs(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[str, str]], asker: tuple[str, str], scope: Any
) -> None:
    if scope == "own" and asker == ("", ""):
        return
    with new_store(tmp_path_factory.mktemp("store") / "memories") as store:
        store.add(
            [Memory(f"m{i}", f"fact {i}", scope=Scope(*whose), veracity=0.9) for i, whose in enumerate(told)],
        )
        opened = RequestMemories(MemoryService(store), LongTermConfig(top_k=20))
        options = MemoryOptions(*asker, scope=scope)
        seen = {f"fact {i}" for i, whose in enumerate(told) if Scope(*whose) in scopes_of(options)}
        user, agent = asker
        allowed = {("", ""), (user, ""), ("", agent), (user, agent)}
        assert texts(opened, "fact", options) == seen
        assert all(told[int(text.split()[1])] in allowed for text in seen)
        opened.close()
