"""`closed_world` of a request through every door: Python, asyncio, OpenAI's client, /v1/verify, batches, commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from script_rig import scripted_llm
from server_rig import http, openai_client, serving, wait_until_idle
from typer.testing import CliRunner

from ewe import LLM, AsyncLLM
from ewe.cli.main import app
from ewe.errors import InvalidRequestError
from ewe.retrieval.datastore import Datastore
from ewe.server.app import create_app
from ewe.server.settings import ServerSettings
from ewe.types import Passage
from ewe.verification.combination import UNSUPPORTED

openai = pytest.importorskip("openai", reason="the openai client is not installed")

ADA = Passage("ada", "Ada Lovelace was born in London in 1815.", title="Ada Lovelace")
ABSENT = "Grace Hopper was born in New York in 1906."
MESSAGES: Any = [{"role": "user", "content": "Who was Grace Hopper?"}]
SETTINGS: dict[str, Any] = {
    "feedback": {"verify_every": 1, "max_attempts": 1, "on_exhausted": "flag"},
}
OUTCOMES = [(None, "inconclusive"), (True, "refuted"), (False, "inconclusive")]
PATHS = ["chat/completions", "completions", "responses"]


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with scripted_llm("none", lambda prompt, units: ABSENT, SETTINGS, datastore=Datastore([ADA])) as opened:
        yield opened
        wait_until_idle(opened)


@pytest.fixture(scope="module")
def url(llm: LLM) -> Iterator[str]:
    with serving(create_app(llm)) as address:
        yield address


def told(closed: bool | None) -> dict[str, Any]:
    return {} if closed is None else {"closed_world": closed}


def prompt(llm: LLM) -> str:
    return llm.apply_chat_template(MESSAGES)


@pytest.mark.parametrize(("closed", "verdict"), OUTCOMES)
def test_python_takes_it_in_every_way(llm: LLM, closed: bool | None, verdict: str) -> None:
    [chat] = llm.chat(MESSAGES, closed_world=closed)
    [plain] = llm.generate(prompt(llm), closed_world=closed)
    streamed = list(llm.stream(prompt(llm), closed_world=closed))[-1].generation
    for answer in (chat, plain, streamed):
        assert [sentence.verdict for sentence in answer.sentences] == [verdict]
        [claim] = answer.sentences[0].claims
        assert claim.reason == (UNSUPPORTED if closed else "")
        [check] = [event.data for event in answer.trace if event.kind == "verification"]
        assert [item["reason"] for item in check["claims"]] == [claim.reason]


@pytest.mark.parametrize(("closed", "verdict"), OUTCOMES)
def test_asyncio_takes_it_in_every_way(llm: LLM, closed: bool | None, verdict: str) -> None:
    engine = AsyncLLM.__new__(AsyncLLM)
    engine.llm = llm

    async def ask() -> list[Any]:
        [chat] = await engine.chat(MESSAGES, closed_world=closed)
        [plain] = await engine.generate(prompt(llm), closed_world=closed)
        events = [event async for event in engine.stream(prompt(llm), closed_world=closed)]
        return [chat, plain, events[-1].generation]

    answers = asyncio.run(ask())
    assert [answer.sentences[0].verdict for answer in answers] == [verdict] * 3


@pytest.mark.parametrize(("closed", "verdict"), OUTCOMES)
def test_openais_client_sends_it_in_ewe(llm: LLM, url: str, closed: bool | None, verdict: str) -> None:
    client, extra = openai_client(url, strict=True), {"ewe": told(closed)}
    answers = [
        client.chat.completions.create(model="scripted", messages=MESSAGES, extra_body=extra),
        client.completions.create(model="scripted", prompt=prompt(llm), max_tokens=60, extra_body=extra),
        client.responses.create(model="scripted", input=MESSAGES[0]["content"], extra_body=extra),
    ]
    for answer in answers:
        [sentence] = answer.ewe["sentences"]
        assert sentence["verdict"] == verdict
        assert [claim["reason"] for claim in sentence["claims"]] == [UNSUPPORTED if closed else ""]


@pytest.mark.parametrize("value", ["true", 1, "no", [], {}])
def test_another_type_is_a_400_that_names_the_field(url: str, value: Any) -> None:
    bodies = {
        "chat/completions": {"messages": MESSAGES},
        "completions": {"prompt": "Who?"},
        "responses": {"input": "?"},
    }
    for path in PATHS:
        answer = http.post(f"{url}/v1/{path}", json={**bodies[path], "ewe": {"closed_world": value}})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "ewe.closed_world"), answer.text
    answer = http.post(f"{url}/v1/verify", json={"text": ABSENT, "closed_world": value})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "closed_world"), answer.text


@pytest.mark.parametrize("against", [{}, {"documents": [{"text": ADA.text, "title": ADA.title}]}])
@pytest.mark.parametrize(("closed", "verdict"), OUTCOMES)
def test_a_finished_text_is_checked_so(url: str, against: Any, closed: bool | None, verdict: str) -> None:
    checked = http.post(f"{url}/v1/verify", json={"text": ABSENT, **against, **told(closed)}).json()
    assert checked["verdict"] == verdict
    [claim] = checked["sentences"][0]["claims"]
    assert claim["reason"] == (UNSUPPORTED if closed else "")


def test_it_is_refused_where_no_sentence_is_checked() -> None:
    with scripted_llm("none", lambda prompt, units: ABSENT) as llm, serving(create_app(llm)) as url:
        with pytest.raises(InvalidRequestError, match=r"closed_world: .* there is no datastore"):
            llm.chat(MESSAGES, closed_world=True)
        assert llm.chat(MESSAGES, closed_world=False)[0].text == ABSENT
        with pytest.raises(openai.BadRequestError) as refused:
            openai_client(url).chat.completions.create(
                model="scripted", messages=MESSAGES, extra_body={"ewe": {"closed_world": True}}
            )
        assert refused.value.param == "closed_world"
        with pytest.raises(InvalidRequestError, match="must be True, False or None"):
            llm.generate("Who?", closed_world="yes")  # type: ignore[arg-type]


def test_lines_of_a_batch_have_their_own(llm: LLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "requests.jsonl"
    lines = [
        {
            "custom_id": str(closed),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"messages": MESSAGES, "ewe": told(closed)},
        }
        for closed, _ in OUTCOMES
    ]
    asked.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr("ewe.cli.batch_run.open_llm", lambda config: llm)
    monkeypatch.setattr(llm, "close", lambda: None)
    result = CliRunner().invoke(app, ["batch", str(asked), "--output", str(tmp_path / "results.jsonl")])
    assert result.exit_code == 0, result.output
    answers = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    found = {one["custom_id"]: one["response"]["body"]["ewe"]["sentences"][0]["verdict"] for one in answers}
    assert found == {str(closed): verdict for closed, verdict in OUTCOMES}


def test_the_server_with_closed_settings_opens_for_a_request() -> None:
    closed_settings = {**SETTINGS, "feedback": {**SETTINGS["feedback"], "closed_world": True}}
    datastore = Datastore([ADA])
    with scripted_llm("none", lambda prompt, units: ABSENT, closed_settings, datastore=datastore) as llm:
        verdicts = [llm.chat(MESSAGES, closed_world=closed)[0].sentences[0].verdict for closed in (None, True, False)]
        assert verdicts == ["refuted", "refuted", "inconclusive"]
        with serving(create_app(llm, ServerSettings())) as url:
            bodies = [{"text": ABSENT, **told(closed)} for closed in (None, True, False)]
            checked = [http.post(f"{url}/v1/verify", json=body).json()["verdict"] for body in bodies]
            assert checked == verdicts


@pytest.mark.parametrize(
    ("options", "status"), [([], 0), (["--closed-world"], 1), (["--set", "feedback.closed_world=true"], 1)]
)
def test_ewe_verify_refutes_what_the_documents_do_not_bear(tmp_path: Path, options: list[str], status: int) -> None:
    (tmp_path / "ada.txt").write_text(f"{ADA.text}\n")
    arguments = ["--documents", str(tmp_path / "ada.txt"), "--set", "retrieval.retriever=bm25"]
    result = CliRunner().invoke(app, ["verify", *arguments, *options], input=f"{ABSENT} {ADA.text}")
    assert result.exit_code == status, result.output
    assert (f"      {UNSUPPORTED}" in result.stdout.splitlines()) == bool(options)
    assert ("      found instead " in result.stdout) == bool(options)
    assert "against" not in result.stdout


def test_ewe_verify_opens_a_world_that_a_file_closes(tmp_path: Path) -> None:
    (tmp_path / "ada.txt").write_text(f"{ADA.text}\n")
    (tmp_path / "closed.yaml").write_text("feedback: {closed_world: true}\n")
    arguments = ["verify", "--documents", str(tmp_path / "ada.txt"), "--config", str(tmp_path / "closed.yaml")]
    assert CliRunner().invoke(app, arguments, input=ABSENT).exit_code == 1
    assert CliRunner().invoke(app, [*arguments, "--open-world"], input=ABSENT).exit_code == 0


@pytest.mark.parametrize(
    ("option", "is_closed"),
    [
        (["--model", "some"], False),
        (["--model", "some", "--closed-world"], True),
        (["--open-world"], False),  # the built-in model's own settings close it
    ],
)
def test_ewe_generate_has_the_setting(monkeypatch: pytest.MonkeyPatch, option: list[str], is_closed: bool) -> None:
    class OpenedError(Exception):
        pass

    opened: list[Any] = []

    def open_llm(config: Any) -> Any:
        opened.append(config)
        raise OpenedError

    monkeypatch.setattr("ewe.cli.generate.open_llm", open_llm)
    result = CliRunner().invoke(app, ["generate", "Who?", *option])
    assert isinstance(result.exception, OpenedError), result.output
    assert opened[0].feedback.closed_world is is_closed
