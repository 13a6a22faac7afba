"""`ewe.Memory`: the same program in a folder and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from server_rig import httpx, serving

import ewe
from ewe import LLM
from ewe.errors import ConfigError, DatastoreError, InvalidRequestError
from ewe.longterm.query_time import seconds
from ewe.longterm.records import MemorySource
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings

Make = Callable[..., ewe.Memory]
BERLIN, PARIS = "I live in Berlin", "I live in Paris"
PORTO, BERGEN = "I live in Porto.", "I moved to Bergen."


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"retrieval": {"encoder": None}, "longterm": {"path": str(tmp_path_factory.mktemp("server") / "m")}}
    with LLM("builtin", config=settings) as llm, serving(create_app(llm, ServerSettings())) as address:
        yield address


@pytest.fixture(params=["folder", "server"])
def make(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> Iterator[Make]:
    """Makes memories, all of one store; each test has users of its own."""
    home = ewe.Memory(url) if request.param == "server" else ewe.Memory(tmp_path / "me.db", encoder="none")
    user = f"{request.node.name} {request.param}"

    def made(agent: str = "", whose: str = user) -> ewe.Memory:
        return home.of(whose, agent)

    yield made
    home.close()


def contents(found: list) -> list[str]:
    return [one.content for one in found]


def test_a_newer_fact_takes_the_place_of_an_older_one(make: Make) -> None:
    m = make()
    [old] = m.add(BERLIN)
    [new] = m.add(PARIS)
    assert (old.supersedes, new.supersedes) == ((), (old.id,))
    assert contents(m.search("Where do I live?")) == [PARIS]
    ended = m.get(old.id)
    assert (ended and ended.valid_until) == new.valid_from
    why = m.why(new.id)
    assert (contents(list(why.supersedes)), why.memory.source.kind) == ([BERLIN], "user")
    [gone] = m.superseded()
    assert (gone.memory, gone.by and gone.by.content) == (ended, PARIS)
    assert m.why(old.id).ended == gone
    assert gone.text.endswith(f": {PARIS}")
    assert gone.text in str(m.why(old.id))
    m.restore(old.id)
    assert set(contents(m.search("Where do I live?"))) == {BERLIN, PARIS}
    assert (m.superseded(), m.why(old.id).ended) == ([], None)


def test_a_change_that_is_told_takes_the_place_of_what_was_before(make: Make) -> None:
    m = make()
    [old] = m.add(PORTO)
    [new] = m.add(BERGEN)
    assert (len(new.id) > 0, new.supersedes) == (True, (old.id,))
    assert contents(m.search("Where do I live?")) == [BERGEN]
    assert [one.memory.id for one in m.superseded()] == [old.id]


def test_a_history_from_elsewhere_keeps_its_dates(make: Make) -> None:
    m = make()
    m.add(PARIS, observed_at="2025-02-01")
    [old] = m.add(BERLIN, created_at="2023-03-01", observed_at="2023-02-01")  # in any order
    assert (old.created_at, old.observed_at) == (seconds("", "2023-03-01"), seconds("", "2023-02-01"))
    assert contents(m.search("Where do I live?")) == [PARIS]
    assert contents(m.search("Where did I live in 2024?")) == [BERLIN]
    assert contents(m.search("Where do I live?", as_of="2024-05-01")) == [BERLIN]
    assert contents(m.get_all(as_of="2024-05-01")) == [BERLIN]
    assert [(one.content, one.supersedes) for one in m.get_all()] == [(PARIS, (old.id,)), (BERLIN, ())]
    ended = m.why(old.id).ended
    assert (ended and ended.by and ended.by.content) == PARIS
    assert m.get(old.id, as_of="2025-05-01") is None
    [again] = m.add(BERLIN, created_at="2023-03-01", observed_at="2023-02-01")
    assert (again.id, len(m.get_all())) == (old.id, 2)


def test_messages_become_facts_or_stay_turns(make: Make) -> None:
    m = make()
    talk = [{"role": "user", "content": "Hi! I live in Lyon."}, {"role": "assistant", "content": "Nice."}]
    talk[0]["created_at"] = "2024-05-01"
    [fact] = m.add(talk, metadata={"app": "chat"})
    assert fact.observed_at == seconds("", "2024-05-01")
    assert (fact.content, fact.metadata["app"]) == ("The user lives in Lyon.", "chat")
    assert m.why(fact.id).said == "Hi! I live in Lyon."
    turns = m.add(talk, infer=False)
    assert contents(turns) == ["Hi! I live in Lyon.", "Nice."]
    assert [(one.source.kind, one.kind) for one in turns] == [("user", "turn"), ("assistant", "turn")]
    parts = [{"role": "user", "content": [{"type": "text", "text": "I have a dog."}]}]
    assert contents(m.add(parts, infer=False)) == ["I have a dog."]
    with pytest.raises(InvalidRequestError, match="must have a text"):
        m.add([{"role": "user"}])


def test_what_is_changed_keeps_its_history_until_it_is_deleted(make: Make) -> None:
    m = make()
    [made] = m.add("The office opens at nine.", valid_from="2024-01-01")
    changed = m.update(made.id, "The office opens at eight.", metadata={"floor": "2"})
    assert (changed.id, changed.content, changed.metadata) == (made.id, "The office opens at eight.", {"floor": "2"})
    assert [(one.reason, one.content_before) for one in m.history(made.id)][-1] == ("edited", made.content)
    was = m.get(made.id, as_of=made.updated_at)
    assert (was and was.content) == made.content
    assert m.restore(made.id).content == made.content
    assert m.feedback(made.id, correct=True).correct_count == 1
    m.forget(made.id)
    assert m.get(made.id) is None
    with pytest.raises(InvalidRequestError, match="search or list them first"):
        m.history(made.id)
    m.add("Tea is hot.")
    make("helper").add("Tea is green.")
    assert m.delete_all() == 2


def test_others_are_out_of_reach_and_only_the_own_can_be_changed(make: Make) -> None:
    ann, with_helper, bob = make(), make("helper"), make(whose="bob")
    [own] = ann.add("The tea is green.")
    [hers] = with_helper.add("The tea is warm.")
    assert (bob.get(own.id), bob.search("tea")) == (None, [])
    assert set(contents(with_helper.search("tea"))) == {own.content, hers.content}
    assert contents(ann.get_all()) == [own.content]
    assert with_helper.update(own.id, "The tea is black.").scope == own.scope
    tool = MemorySource("tool", "meter", 0.9)
    [said] = ann.add("The tea has 80 degrees.", source=tool)
    beside = ann.correct(said.id, "The tea has 60 degrees.")
    assert (beside.id != said.id, beside.contradicts) == (True, (said.id,))


def test_what_is_wrong_says_what_to_do(make: Make) -> None:
    m = make()
    with pytest.raises(InvalidRequestError, match="as_of: a time is an ISO date"):
        m.search("tea", as_of="yesterday")
    with pytest.raises(InvalidRequestError, match=r"^top_k"):
        m.search("tea", -1)
    with pytest.raises(InvalidRequestError, match="name the user"):
        make(whose="").delete_all()
    [made] = m.add("Tea.")
    with pytest.raises(InvalidRequestError, match="nothing to restore"):
        m.restore(made.id)


def test_what_would_be_lost_without_a_word_is_refused(make: Make) -> None:
    m = make()
    with pytest.raises(InvalidRequestError, match=r"role is one of user, assistant, .*, got 'human'"):
        m.add([{"role": "human", "content": PORTO}])
    [kept] = m.add(PORTO)
    with pytest.raises(InvalidRequestError, match="content, metadata or both"):
        m.update(kept.id)
    assert [one.reason for one in m.history(kept.id)] == ["added"]
    assert (m.search(""), m.search(" \n")) == ([], [])


def test_a_server_that_is_not_there_or_wants_a_key() -> None:
    with pytest.raises(DatastoreError, match="cannot be reached"):
        ewe.Memory("http://127.0.0.1:9", user="ann").search("tea")
    for wrong in ("http://ann:secret@host", "http://"):
        with pytest.raises(ConfigError, match="without credentials"):
            ewe.Memory(wrong)
    with pytest.raises(ConfigError, match="those of the server"):
        ewe.Memory("http://host", encoder="none")


def test_a_server_takes_its_key(url: str, tmp_path: Path) -> None:
    with (
        LLM("builtin", longterm=tmp_path / "keyed") as llm,
        serving(create_app(llm, ServerSettings(api_key="s3cret"))) as address,
    ):
        assert ewe.Memory(address, user="ann", api_key="s3cret").add("Tea.")[0].scope.user == "ann"
        with pytest.raises(InvalidRequestError, match="key"):
            ewe.Memory(address, user="ann").add("Tea.")


def test_dates_go_over_the_wire_as_dates_too(url: str) -> None:
    told = httpx.post(
        f"{url}/v1/memories", json={"content": "Tea.", "user": "wire", "observed_at": "2024-05-01"}
    ).json()
    assert told["observed_at"] == seconds("", "2024-05-01")
    found = httpx.get(f"{url}/v1/memories", params={"user": "wire", "as_of": "2024-06-01"}).json()
    assert [one["content"] for one in found["data"]] == ["Tea."]
    refused = httpx.get(f"{url}/v1/memories", params={"user": "wire", "as_of": "soon"})
    assert (refused.status_code, "ISO date" in refused.text) == (400, True)
