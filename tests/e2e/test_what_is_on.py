"""Whoever names a datastore has sentences checked, unless they say otherwise; and the server says what is on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_rig import loaded, tiny_llm
from server_rig import LONG, ServerProcess, httpx, serving

from ewe import LLM, SamplingParams
from ewe.errors import ConfigError
from ewe.retrieval.datastore import Datastore
from ewe.server.app import create_app
from ewe.server.engine_client.served_engine import LocalEngine
from ewe.server.observability.start_report import report_engine
from ewe.server.settings import ServerSettings
from ewe.types import Passage, ScoredPassage, VerificationRequest, VerificationResult

SEA = Passage("sea", "Nurim Nurner was born in 1901.", title="Nurim Nurner")
AUTO: dict[str, Any] = {"verifier": "auto", "retrieval": {"retriever": "bm25"}, "memory": {"unit_tokens": 24}}
NOT_CHECKED = [{"policy": "plain"}, {"policy": "rag"}, {"policy": "flare"}, {"memory": {"verification_units": 0}}]


class Shelf:
    """A retriever of somebody's own, which says nothing about itself."""

    def retrieve(self, queries: Any, top_k: int) -> list[list[ScoredPassage]]:
        return [[ScoredPassage(SEA, 1.0)] for _ in queries]


class Yes:
    """A verifier of somebody's own."""

    def verify(self, requests: list[VerificationRequest]) -> list[VerificationResult]:
        return [VerificationResult() for _ in requests]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.jsonl"
    path.write_text(json.dumps({"id": "sea", "title": "Nurim Nurner", "text": SEA.text}) + "\n")
    return path


def summary(config: dict[str, Any] | None = None, **components: Any) -> Any:
    with tiny_llm({**AUTO, **(config or {})}, **components) as llm:
        return llm.client.components.summary


@pytest.mark.parametrize("source", [Datastore([SEA]), Shelf()])
def test_a_datastore_alone_has_sentences_checked(source: Any) -> None:
    on = summary(datastore=source)
    assert (on.verifier, on.judge, on.unchecked) == ("claims", "builtin", "")
    assert on.datastore.name == type(source).__name__


def test_a_path_is_known_by_its_last_name(notes: Path) -> None:
    on = summary(datastore=notes, verifier="builtin")
    assert str(on) == "policy ewe; datastore notes.jsonl (1 passage, BM25); verifier builtin; long-term memory off"
    assert str(summary({"datastore": str(notes), "verifier": "none"})) == (
        "policy ewe; datastore notes.jsonl (1 passage, BM25); sentences are not checked: verifier none; "
        "long-term memory off"
    )


def test_sentences_of_an_answer_have_verdicts_with_a_datastore_alone(notes: Path) -> None:
    with tiny_llm({**AUTO, "verification": {"judge": "builtin"}}, datastore=notes) as llm:
        [answer] = llm.generate("The sea", SamplingParams(max_tokens=24, ignore_eos=True))
        assert [event for event in answer.trace if event.kind == "verification"]
    with tiny_llm(AUTO, datastore=notes, verifier="none") as llm:
        [answer] = llm.generate("The sea", SamplingParams(max_tokens=24, ignore_eos=True))
        assert {sentence.reason for sentence in answer.sentences} == {"no verifier"}


@pytest.mark.parametrize("settings", NOT_CHECKED)
def test_where_nothing_can_be_checked_auto_is_off_and_says_why(settings: dict[str, Any]) -> None:
    memory = {**AUTO["memory"], **settings.get("memory", {})}
    on = summary({**settings, "memory": memory}, datastore=Shelf())
    assert on.verifier == "none"
    assert on.unchecked == (
        f"policy {settings['policy']} checks nothing" if "policy" in settings else "memory.verification_units is 0"
    )


def test_what_is_asked_for_by_name_is_refused_where_it_cannot_work() -> None:
    for given in ({"verifier": "claims"}, {"config": {"verifier": "claims"}}):
        config = {**AUTO, "memory": {"unit_tokens": 24, "verification_units": 0}, **given.pop("config", {})}
        with pytest.raises(ConfigError, match=r"memory\.verification_units to 1 or more, or verifier to none"):
            tiny_llm(config, datastore=Shelf(), **given)


def test_no_datastore_and_objects() -> None:
    assert summary().unchecked == "there is no datastore"
    own = summary(verifier=Yes())
    assert (own.verifier, own.judge, own.unchecked, own.datastore) == ("Yes", None, "", None)
    with LLM("tiny", config={**AUTO, "datastore": "builtin"}, loaded=loaded(), datastore="none") as llm:
        assert llm.client.components.retriever is None


UNKNOWN = [
    ({"verifier": "claim"}, r"did you mean claims\? known: claims, builtin, auto, none"),
    (
        {"datastore": "buildin"},
        r"did you mean builtin\? known: builtin, wikipedia-sample, none, a folder .*, a JSONL",
    ),
    ({"config": {**AUTO, "policy": "flaer"}}, r"did you mean flare\? known: ewe, rag, flare, plain"),
    ({"config": {**AUTO, "retrieval": {"retriever": "bm52"}}}, r"retriever: .* did you mean bm25\? known: bm25, dense"),
    (
        {"datastore": Shelf(), "config": {**AUTO, "verification": {"judge": " "}}},
        "known: builtin, base, reader, writer, a",
    ),
]


@pytest.mark.parametrize(("given", "told"), UNKNOWN)
def test_an_unknown_name_is_answered_with_all_that_are_known(given: dict[str, Any], told: str) -> None:
    with pytest.raises(Exception, match=told):
        LLM("tiny", loaded=loaded(), **given)


@pytest.fixture
def client(notes: Path, request: Any) -> Iterator[Any]:
    """A server with a datastore; what the test asks for on top is its parameter."""
    config = {**AUTO, "verification": {"judge": "builtin"}, **getattr(request, "param", {})}
    settings = ServerSettings(api_key=config.pop("api_key", None))
    with tiny_llm(config, datastore=notes) as llm, serving(create_app(llm, settings)) as url:
        yield httpx.Client(base_url=url, timeout=LONG)


def test_health_and_the_page_say_what_is_on(client: Any) -> None:
    engine = client.get("/health").json()["engine"]
    assert engine == {
        "policy": "ewe",
        "datastore": {"name": "notes.jsonl", "passages": 1, "search": "BM25"},
        "verifier": "claims",
        "judge": "builtin",
        "unchecked": "",
        "longterm_memory": False,
    }
    assert client.get("/page/start.json").json() == {
        "examples": [],
        "engine": engine,
        "checks_every_sentence": not engine["unchecked"],
    }


@pytest.mark.parametrize("client", [{"api_key": "secret"}], indirect=True)
def test_health_says_what_is_on_to_those_only_who_have_the_key(client: Any) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}):
        assert client.get("/health", headers=headers).json() == {"status": "alive", "engine": None}
    known = client.get("/health", headers={"authorization": "Bearer secret"}).json()
    assert known["engine"]["verifier"] == "claims"


@pytest.mark.parametrize("client", [{"verifier": "none"}, {"policy": "rag"}, {}], indirect=True)
def test_texts_are_checked_against_the_datastore_whatever_answers_are(client: Any) -> None:
    checked = client.post("/v1/verify", json={"text": "Nurim Nurner was born in 1901."}).json()
    assert checked["sentences"][0]["verdict"] == "supported"
    assert checked["sources"][0]["id"] == "sea"


def test_without_a_datastore_a_text_needs_documents() -> None:
    with tiny_llm(AUTO) as llm, serving(create_app(llm, ServerSettings())) as url:
        refused = httpx.post(f"{url}/v1/verify", json={"text": "The sea is wide."}, timeout=LONG)
        assert (refused.status_code, "no datastore: give documents" in refused.text) == (400, True)


def test_the_log_says_what_is_on(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tiny_llm({**AUTO, "verification": {"judge": "builtin"}}, datastore=notes) as llm:
        report_engine(LocalEngine(llm), 0.1)
    on = "engine policy ewe; datastore notes.jsonl (1 passage, BM25); verifier claims (judge builtin); long-term memory"
    assert on in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_takes_none_for_a_verifier(notes: Path) -> None:
    with ServerProcess("--datastore", str(notes), "--verifier", "none") as server:
        url = server.wait_until_ready()
        assert "datastore notes.jsonl (1 passage, BM25); sentences are not checked: verifier none" in server.output
        assert httpx.get(f"{url}/health").json()["engine"]["unchecked"] == "verifier none"
