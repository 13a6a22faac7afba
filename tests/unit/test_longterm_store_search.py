"""Finding memories: the ranking against BM25 as it is written, what large scopes change, and vectors in their file."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import ConfigError, DatastoreError, InvalidRequestError
from ewe.longterm.memory_search import MemorySearch, address, as_passage, scope_and_id
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change, MemoryStore
from ewe.longterm.store.ivf import centres_of
from ewe.longterm.store.lexical import terms
from tests.unit.longterm_parts import WordEncoder, memories, new_store, raw

ANN, BOB = Scope("ann"), Scope("bob")
VOCABULARY = ["tea", "red", "wine", "Lyon", "new", "likes", "moved"]
LONG = 60.0
TEXTS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8).map(" ".join)


@pytest.fixture
def store(new_place: Callable[[], Any]):
    with new_store(new_place()) as created:
        yield created


@pytest.fixture
def file_store(tmp_path: Path):
    with new_store(tmp_path / "store") as created:
        yield created


def bm25(texts: Sequence[str], query: str) -> list[float]:
    """Lucene's BM25 with k1 = 1.5 and b = 0.75, term by term."""
    tokens = [terms(text) for text in texts]
    mean = sum(map(len, tokens)) / len(tokens)
    scores = []
    for each in tokens:
        score = 0.0
        for word in set(terms(query)):
            frequency = sum(word in other for other in tokens)
            times = Counter(each)[word]
            idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
            score += idf * times / (times + 1.5 * (0.25 + 0.75 * len(each) / mean))
        scores.append(score)
    return scores


def test_small_scopes_are_ranked_by_bm25_over_what_is_seen(store: MemoryStore) -> None:
    @examples(*((25, 100) if isinstance(store.path, Path) else (5, 10)))
    @given(mine=st.lists(TEXTS, min_size=1, max_size=6), team=st.lists(TEXTS, max_size=4), query=TEXTS)
    def check(mine: list[str], team: list[str], query: str) -> None:
        example = str(len(store))
        own, shared, other = Scope("ann", example), Scope(agent=example), Scope("bob", example)
        store.add(Memory(f"a{i}", text, scope=own) for i, text in enumerate(mine))
        store.add(Memory(f"s{i}", text, scope=shared) for i, text in enumerate(team))
        store.add(Memory(f"b{i}", text, scope=other) for i, text in enumerate([query, *mine, query]))
        [found] = MemorySearch(store).search([query], [own, shared], 20)
        texts = {f"a{i}": text for i, text in enumerate(mine)} | {f"s{i}": text for i, text in enumerate(team)}
        expected = dict(zip(texts, bm25(list(texts.values()), query), strict=True))
        best = max(expected.values())
        assert {hit.memory.id: hit.score for hit in found} == pytest.approx(
            {k: v / best for k, v in expected.items() if v > 0}
        )
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)

    check()


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("我住在柏林的一个小公寓里", "她在柏林吗"),
        ("アンは東京で働いています", "東京には誰がいますか"),
        ("แอนทำงานที่กรุงเทพมหานคร", "ใครอยู่กรุงเทพ"),
        ("Ann went running in the mornings", "Does Ann run every morning?"),
    ],
)
def test_writing_without_spaces_and_other_forms_of_a_word_are_found(
    store: MemoryStore, content: str, query: str
) -> None:
    store.add([Memory("x", content), Memory("y", "Der Zug hält in Graz"), Memory("z", "昨日猫鱼")])
    [found] = MemorySearch(store).search([query], [Scope()], 3)
    assert [hit.memory.id for hit in found] == ["x"]


def turns(*texts: str, kind: str = "turn", at: float = 0.0) -> list[Memory]:
    return [Memory(f"t{i}", text, kind, created_at=at) for i, text in enumerate(texts)]


@pytest.mark.parametrize(("kind", "found"), [("turn", ["t1", "t2", "t0"]), ("fact", ["t1"])])
def test_turns_beside_a_hit_are_found_with_it(store: MemoryStore, kind: str, found: list[str]) -> None:
    store.add(turns("Hello there", "Where does Ann live?", "In Lyon since May", "I see", kind=kind))
    [hits] = MemorySearch(store).search(["Where does Ann live?"], [Scope()], 5)
    assert [hit.memory.id for hit in hits] == found
    assert [hit.score for hit in hits] == ([0.8, 0.7, 0.2] if kind == "turn" else [1.0])


@pytest.mark.parametrize("asked", ["Where does Ann live?", "Hi! Where does Ann live? (shows a map)"])
def test_an_answer_gets_most_of_the_score_of_its_question(store: MemoryStore, asked: str) -> None:
    store.add(turns("Ann's cat", "No idea", asked, "In Lyon since May", "Is that far? It is.", "Ann said so"))
    [hits] = MemorySearch(store).search(["Ann live"], [Scope()], 6)
    scores = {hit.memory.id: hit.score for hit in hits}
    assert scores["t3"] == pytest.approx(7 / 8 * scores["t2"], rel=0.2)
    assert scores["t1"] < 0.5 < scores["t3"]


def test_words_that_any_question_has_weigh_little(store: MemoryStore) -> None:
    texts = ["Ann's cat moved to Lyon", "I told her when you did that to me", "Tea"]
    store.add(Memory(str(place), text) for place, text in enumerate(texts))
    [about, alone] = MemorySearch(store).search(["When did you move it to Lyon?", "When did you?"], [Scope()], 5)
    assert [hit.memory.id for hit in about] == ["0", "1"]
    assert about[1].score < 0.5
    assert [(hit.memory.id, hit.score) for hit in alone] == [("1", 1.0)]


def test_what_is_asked_for_is_found_in_other_words(store: MemoryStore) -> None:
    store.add([Memory("home", "I moved to Bergen.", scope=ANN), Memory("tea", "I like tea.", scope=ANN)])
    [hits] = MemorySearch(store).search(["Where does Ann live?"], [ANN], 5)
    assert [hit.memory.id for hit in hits] == ["home"]


def test_turns_of_other_scopes_and_conversations_are_not_beside_it(store: MemoryStore) -> None:
    asked = Memory("asked", "Where does Ann live?", "turn", created_at=1000.0)
    for scope, at in ((BOB, 1000.0), (Scope(), 9000.0)):
        store.add([asked, Memory(f"next {at}", "In Lyon", "turn", scope=scope, created_at=at)])
    [hits] = MemorySearch(store).search(["Where does Ann live?"], [Scope(), BOB], 5)
    assert [hit.memory.id for hit in hits] == ["asked"]


def test_a_date_in_the_query_prefers_what_was_said_then(store: MemoryStore) -> None:
    days = {"may": "2023-05-09", "late": "2023-05-29", "june": "2023-06-09", "before": "2022-05-08"}
    for name, day in days.items():
        at = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        store.add([Memory(name, "Ann met Tom", created_at=at)])

    def scores(query: str) -> dict[str, float]:
        [hits] = MemorySearch(store).search([query], [Scope()], 5)
        return {hit.memory.id: round(hit.score, 2) for hit in hits}

    assert scores("Whom did Ann meet on 8 May 2023?") == {"may": 1.3, "late": 1.15, "june": 1.0, "before": 1.0}
    assert scores("Whom did Ann meet on 2023-05-08?") == scores("Whom did Ann meet on 8 May 2023?")
    assert scores("Whom did Ann meet in May?") == {"may": 1.3, "late": 1.3, "june": 1.0, "before": 1.3}
    assert set(scores("Whom may Ann have met in 2023?").values()) == {1.0}


def test_vectors_are_made_beside_whoever_adds(store: MemoryStore) -> None:
    encoder, asked = WordEncoder(), threading.Event()
    encode = encoder.encode_passages

    def slowly(texts: Sequence[str]) -> np.ndarray:
        assert asked.wait(LONG)
        return encode(texts)

    encoder.encode_passages = slowly  # type: ignore[method-assign]
    service = MemoryService(store, encoder=encoder, in_background=True)
    service.add("Ann lives in Lyon", Scope(), MemorySource("user", "ann"))
    assert [one.memory.content for one in service.search("Lyon", [Scope()], threshold=0.0).used] == [
        "Ann lives in Lyon"
    ]
    assert store.stats()["without_vector"] == 1
    asked.set()
    wait_until(lambda: store.stats()["without_vector"] == 0)
    service.close()
    service.add("Bob lives in Nice", Scope(), MemorySource("user", "bob"))
    assert store.stats()["without_vector"] == 1


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_of_equal_memories_the_newest_comes_first(store: MemoryStore) -> None:
    store.add(Memory(str(i), "tea", scope=ANN) for i in range(5))
    [found] = MemorySearch(store).search(["tea"], [ANN], 3)
    assert [hit.memory.id for hit in found] == ["4", "3", "2"]


def test_common_words_only_order_what_rare_words_find(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.store.lexical.EXACT_POSTINGS", 10)
    texts = [f"old memory number{i}" for i in range(30)] + ["old rare old", "rare thing", "other"]
    store.add(Memory(str(i), text) for i, text in enumerate(texts))
    search = MemorySearch(store)
    exact = dict(enumerate(bm25(texts, "old rare memory")))
    [found] = search.search(["old rare memory"], [Scope()], 5)
    assert {int(hit.memory.id): hit.score for hit in found} == pytest.approx({30: exact[30] / exact[31], 31: 1.0})
    [newest] = search.search(["old"], [Scope()], 50)  # nothing but a common word: its newest memories
    assert {hit.memory.id for hit in newest} == {"30"} | {str(i) for i in range(21, 30)}


@pytest.mark.parametrize("top_k", [1, 3, 10])
def test_leaving_words_that_change_nothing_unread_changes_no_ranking(store: MemoryStore, top_k: int) -> None:
    random = np.random.default_rng(top_k)
    vocabulary = [f"word{i}" for i in range(30)]
    rarer = 1 / np.arange(1, 31)
    texts = [" ".join(random.choice(vocabulary, 8, p=rarer / rarer.sum())) for _ in range(200)]
    store.add(Memory(str(i), text) for i, text in enumerate(texts))
    within = store.scope_numbers([Scope()])
    for _ in range(20):
        query = " ".join(random.choice(vocabulary, 4, replace=False))
        assert store.lexicon.search(query, within, top_k) == store.lexicon.search(query, within, 200)[:top_k]


def test_common_words_are_looked_up_for_what_rare_ones_found(file_store: MemoryStore) -> None:
    file_store.add(Memory(str(i), f"old thing{' rare' if i < 3 else ''}") for i in range(200))
    statements: list[str] = []
    file_store._session._connection.set_trace_callback(statements.append)
    found = file_store.lexicon.search("old rare", file_store.scope_numbers([Scope()]), 2)
    assert len(found) == 2
    assert ["memory IN" in one for one in statements if "FROM postings" in one] == [False, True]


def test_a_long_query_is_searched_by_its_rarest_words(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.longterm.store.lexical._MOST_WORDS", 1)
    store.add([Memory("x", "tea rare"), Memory("y", "tea"), Memory("z", "tea")])
    [found] = MemorySearch(store).search(["tea and a rare thing"], [Scope()], 5)
    assert [hit.memory.id for hit in found] == ["x"]


def test_words_follow_changes_of_content_and_go_with_their_last_memory(store: MemoryStore) -> None:
    store.add([Memory("x", "red wine", scope=ANN), Memory("y", "red tea", scope=ANN)])
    store.revise(ANN, "x", Change(content="white wine"), at=1.0, reason="said")
    assert [hit.memory.id for hit in MemorySearch(store).search(["red white"], [ANN], 5)[0]] == ["y", "x"]
    store.delete(ANN, ["y"], at=2.0, reason="asked")
    assert {word for (word,) in raw(store, "SELECT word FROM words")} == {"whit", "win"}


def test_words_are_taken_again_when_texts_come_apart_otherwise(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(memories(3, ANN))
    store.close()
    monkeypatch.setattr("ewe.longterm.store.lexical.terms", lambda text: text.upper().split())
    with MemoryStore.open(store.path, read_only=False) as opened:
        [found] = MemorySearch(opened).search(["word1"], [ANN], 5)
        assert [hit.memory.id for hit in found] == ["m1"]
        assert "WORD1" in {word for (word,) in raw(opened, "SELECT word FROM words")}
        assert opened.verify() == []


def test_meaning_finds_what_words_do_not_and_unrelated_things_stay_away(store: MemoryStore) -> None:
    class Synonyms(WordEncoder):
        def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
            return super().encode_queries([text.replace("beverage", "tea") for text in texts])

    store.add([Memory("x", "tea", scope=ANN), Memory("y", "Lyon", scope=ANN), Memory("z", "tea", scope=BOB)])
    encoder = Synonyms(dimension=200)
    assert store.embeddings.embed(encoder) == 3
    [tea] = encoder.encode_queries(["tea"])
    with store.seeing([ANN]):
        hits = store.embeddings.search(tea, store.scope_numbers([ANN]), 5)
    assert len(hits) == len(store.rows([number for number, _ in hits], [ANN])) == 2
    search = MemorySearch(store, encoder)
    assert [hit.memory.id for hit in search.search(["beverage"], [ANN], 5)[0]] == ["x"]
    assert search.search(["nothing alike"], [ANN], 5) == [[]]
    assert MemorySearch(store).search(["beverage"], [ANN], 5) == [[]]


def test_only_what_has_no_vector_is_encoded(store: MemoryStore) -> None:
    encoder = WordEncoder()
    store.add(memories(3, ANN))
    assert store.embeddings.embed(encoder) == 3
    store.add(memories(1, BOB, first=3))
    store.revise(ANN, "m1", Change(content="changed"), at=1.0, reason="said")
    store.revise(ANN, "m0", Change(veracity=0.9), at=1.0, reason="said")
    encoder.encoded.clear()
    assert store.embeddings.embed(encoder) == 2
    assert sorted(text for text in encoder.encoded if "Warsaw" not in text) == ["changed", "memory of word3"]


def test_a_memory_that_changes_while_it_is_encoded_is_encoded_again(store: MemoryStore) -> None:
    store.add(memories(2, ANN))

    class Slow(WordEncoder):
        def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
            if "memory of word0" in texts:
                store.revise(ANN, "m0", Change(content="tea"), at=1.0, reason="said")
                store.delete(ANN, ["m1"], at=1.0, reason="asked")
            return super().encode_passages(texts)

    assert store.embeddings.embed(Slow()) == 0
    assert store.embeddings.embed(WordEncoder()) == 1
    assert store.verify() == []


def test_another_encoder_is_refused_and_can_take_over(store: MemoryStore) -> None:
    store.add(memories(3, ANN))
    store.embeddings.embed(WordEncoder())
    with MemoryStore.open(store.path) as reader:
        for other in (WordEncoder("others"), WordEncoder(sign=-1.0), WordEncoder(dimension=30)):
            with pytest.raises(ConfigError, match="embed --replace"):
                MemorySearch(reader, other)
            with pytest.raises(ConfigError, match="embed --replace"):
                store.embeddings.embed(other)
            assert store.embeddings.embed(other, replace=True) == 3
            [found] = MemorySearch(reader, other).search(["word1"], [ANN], 1)
            assert found[0].memory.id == "m1"
            store.embeddings.embed(WordEncoder(), replace=True)
    if isinstance(store.path, Path):
        assert len(list(store.path.glob("vectors-*"))) == 1


@pytest.mark.parametrize("change", ["delete", "revise"])
def test_vectors_that_are_given_up_are_wiped_from_the_file(file_store: MemoryStore, change: str) -> None:
    store = file_store
    store.add(memories(3, ANN))
    encoder = WordEncoder()
    store.embeddings.embed(encoder)
    secret = encoder.encode_passages(["memory of word1"]).tobytes()
    [file] = store.path.glob("vectors-*")
    assert secret in file.read_bytes()
    if change == "delete":
        store.delete(ANN, ["m1"], at=1.0, reason="asked")
    else:
        store.revise(ANN, "m1", Change(content="tea"), at=1.0, reason="said")
    assert secret not in file.read_bytes()
    [found] = MemorySearch(store, encoder).search(["word2"], [ANN], 1)
    assert found[0].memory.id == "m2"


def test_a_wipe_that_was_interrupted_is_done_at_the_next_start(
    file_store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = file_store
    store.add(memories(2, ANN))
    encoder = WordEncoder()
    store.embeddings.embed(encoder)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "_wipe", lambda self: None)
        store.delete(ANN, ["m1"], at=1.0, reason="asked")
    store.close()
    [file] = store.path.glob("vectors-*")
    secret = encoder.encode_passages(["memory of word1"]).tobytes()
    assert secret in file.read_bytes()
    MemoryStore.open(store.path, read_only=False).close()
    assert secret not in file.read_bytes()


def test_a_file_of_vectors_that_was_cut_short_is_told(file_store: MemoryStore) -> None:
    store = file_store
    store.add(memories(3, ANN))
    store.embeddings.embed(WordEncoder())
    [file] = store.path.glob("vectors-*")
    file.write_bytes(b"")
    with MemoryStore.open(store.path) as reader, pytest.raises(DatastoreError, match=r"cut short.*embed --replace"):
        MemorySearch(reader, WordEncoder()).search(["word1"], [ANN], 1)


def test_large_scopes_are_searched_by_cells(file_store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = file_store
    pytest.importorskip("faiss", reason="k-means is faiss'")
    monkeypatch.setattr("ewe.longterm.store.ivf.WHOLE_LIMIT", 60)
    monkeypatch.setattr("ewe.longterm.store.ivf._PER_CELL", 5)
    monkeypatch.setattr("ewe.longterm.store.ivf._LOOKED_AT", 2)
    encoder = WordEncoder(dimension=64)
    groups = [f"topic{i}" for i in range(20)]
    store.add(Memory(f"{group}-{i}", f"{group} {group} {group} word{i}") for group in groups for i in range(4))
    store.add(memories(3, ANN))
    store.embeddings.embed(encoder)
    assert store._session.query("SELECT count(*) FROM cells") == [(16,)]
    later = Memory("later", "topic7 topic7 topic7")
    store.add([later])
    store.embeddings.embed(encoder)
    with MemoryStore.open(store.path) as reader:
        [number] = reader.scope_numbers([Scope()])
        query = encoder.encode_queries(["topic7"])[0]
        looked_at = reader.embeddings.index._cells.candidates(query, [number])
        assert 0 < len(looked_at) < 60
        found = reader.embeddings.search(query, [number], 5)
        assert {memory for memory, _ in found} <= set(looked_at.tolist())
        hits = reader.rows([memory for memory, _ in found], [Scope()])
        products = {key: float(encoder.encode_passages([hit.content])[0] @ query) for key, hit in hits.items()}
        assert dict(found) == pytest.approx(products)
        assert hits[found[0][0]].id == "later"
    store.add(Memory(f"more-{i}", f"tea word{i}") for i in range(100))
    store.embeddings.embed(encoder)
    assert store._session.query("SELECT count(*) FROM cells") == [(36,)]
    store.delete(Scope(), at=1.0, reason="asked")
    assert store._session.query("SELECT count(*) FROM cells") == [(0,)]
    assert store.verify() == []


def test_without_faiss_large_scopes_stay_whole(file_store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = file_store
    monkeypatch.setattr("ewe.longterm.store.ivf.WHOLE_LIMIT", 10)
    monkeypatch.setattr("ewe.longterm.store.ivf.find_spec", lambda name: None)
    store.add(memories(20, ANN))
    store.embeddings.embed(WordEncoder())
    assert store._session.query("SELECT count(*) FROM cells") == [(0,)]
    assert (
        len(store.embeddings.search(WordEncoder().encode_queries(["word1"])[0], store.scope_numbers([ANN]), 20)) == 20
    )


def test_centres_find_groups_that_lie_apart() -> None:
    pytest.importorskip("faiss", reason="k-means is faiss'")
    random = np.random.default_rng(3)
    groups = np.eye(4, 8, dtype=np.float32) * 10
    vectors = np.repeat(groups, 25, axis=0) + random.standard_normal((100, 8)).astype(np.float32) * 0.01
    centres = centres_of(vectors, 4)
    nearest = ((vectors[:, None] - centres) ** 2).sum(axis=-1)
    assert centres.shape == (4, 8)
    assert float(np.median(nearest.min(axis=1))) < 1.0


def test_a_memory_is_a_passage_with_its_veracity() -> None:
    source = MemorySource("user", "ann", 0.4)
    passage = as_passage(
        Memory(
            "x/1",
            "red wine",
            scope=ANN,
            source=source,
            created_at=9e6,
            updated_at=9e6,
            veracity=0.3,
            observed_at=86400.0,
        )
    )
    assert (passage.text, passage.veracity, passage.source) == ("red wine", 0.3, "user:ann")
    assert (passage.date, scope_and_id(passage.id)) == ("1970-01-02", (ANN, "x/1"))


def test_a_search_for_nothing_is_refused(store: MemoryStore) -> None:
    with pytest.raises(ValueError, match="top_k"):
        MemorySearch(store).search(["red"], [ANN], 0)


@given(user=st.text(max_size=5), agent=st.text(max_size=5), memory_id=st.text(min_size=1, max_size=5))
def test_addresses_name_one_memory(user: str, agent: str, memory_id: str) -> None:
    try:
        memory = Memory(memory_id, "x", scope=Scope(user, agent))
    except InvalidRequestError:
        return
    assert scope_and_id(address(memory)) == (memory.scope, memory_id)
    assert as_passage(memory).id == address(memory)


@pytest.mark.parametrize("other", ["p1", "memory:a/b", "memory:a/b/c/d", "passage:a/b/c", "memory:a/b/"])
def test_other_ids_are_no_memories(other: str) -> None:
    with pytest.raises(InvalidRequestError):
        scope_and_id(other)


def test_lives_is_a_form_of_live(store: MemoryStore) -> None:
    store.add([Memory("m0", "Ann lives in Bergen.", scope=ANN), Memory("m1", "Ann likes tea.", scope=ANN)])
    [hits] = MemorySearch(store).search(["Where does she live?"], [ANN], 5)
    assert [hit.memory.id for hit in hits] == ["m0"]
